#!/usr/bin/env bash
# Make a certificate authority of the cluster's own and one certificate for all of its processes and clients.
#   bin/make-certificates.sh FOLDER [HOST...]      HOST: names and addresses of the machines; localhost is always there
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/config.sh"
[[ $# -ge 1 && "$1" != -* ]] || usage "make-certificates.sh FOLDER [HOST...]"
command -v openssl >/dev/null || die "openssl is not installed"
folder="$1"
shift
names="DNS:localhost,IP:127.0.0.1,IP:::1"
for host in "$@"; do
    if [[ "$host" =~ ^[0-9.]+$ || "$host" == *:* ]]; then
        names+=",IP:$host"
    elif [[ "$host" =~ ^[A-Za-z0-9._*-]+$ ]]; then
        names+=",DNS:$host"
    else
        die "$host is neither a name nor an address"
    fi
done
umask 077
mkdir -p "$folder"
folder="$(cd "$folder" && pwd -P)"
[[ ! -e "$folder/ca.pem" ]] || die "$folder/ca.pem is there already: remove it, or choose another folder"
curve=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc)
openssl req -x509 -new "${curve[@]}" -keyout "$folder/ca.key" -out "$folder/ca.pem" -days 3650 -sha256 \
    -subj "/O=Drey/CN=authority of a cluster" -addext "keyUsage=critical,keyCertSign,cRLSign" 2>/dev/null
openssl req -new "${curve[@]}" -keyout "$folder/cluster.key" -out "$folder/cluster.csr" \
    -subj "/O=Drey/CN=process of a cluster" 2>/dev/null
openssl x509 -req -in "$folder/cluster.csr" -CA "$folder/ca.pem" -CAkey "$folder/ca.key" -CAcreateserial \
    -out "$folder/cluster.pem" -days 825 -sha256 -extfile <(
        printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth,clientAuth\n' "$names"
        printf 'basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n'
    ) 2>/dev/null
rm -f "$folder/cluster.csr" "$folder/ca.srl"
cat <<TEXT
security.ssl.enabled: true
security.ssl.certificate: $folder/cluster.pem
security.ssl.key: $folder/cluster.key
security.ssl.ca: $folder/ca.pem
TEXT
say "Put these lines into conf/config.yaml of all machines, with the three files. $folder/ca.key signs further"
say "certificates: keep it elsewhere."
