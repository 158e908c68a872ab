"""Options that open object stores: endpoints and credentials, of each process its own.

Held by: tests/storage/test_object_store.py
"""

from __future__ import annotations

from typing import Final

from engine.config.config_option import declared as _option

#: prefix of their keys
STORAGE_KEYS: Final = "storage."

_PLACES: Final = {"s3": "S3", "gcs": "Google Cloud Storage", "azure": "Azure"}
_TEXTS: Final = {
    "storage.s3.endpoint": "URL of a store that speaks S3, such as MinIO. Default: AWS_ENDPOINT_URL, or Amazon's.",
    "storage.s3.region": "Region of the buckets. Default: AWS_REGION or AWS_DEFAULT_REGION, or us-east-1.",
    "storage.s3.access-key-id": "Access key of S3. Default: AWS_ACCESS_KEY_ID, or the role of pod, container, machine.",
    "storage.s3.secret-access-key": "Secret of the access key. Default: AWS_SECRET_ACCESS_KEY.",
    "storage.s3.session-token": "Token of temporary credentials. Default: AWS_SESSION_TOKEN.",
    "storage.s3.profile": "Profile in ~/.aws with keys and region. Default: AWS_PROFILE, or the profile default.",
    "storage.gcs.endpoint": "URL of a store that speaks as Google's. Default: Google's.",
    "storage.gcs.service-account-file": "File of a service account. Default: GOOGLE_APPLICATION_CREDENTIALS, or the "
    "account of the machine.",
    "storage.azure.endpoint": "URL of the storage account. Default: Azure's, by the name of the account.",
    "storage.azure.account-name": "Storage account. Default: that of an abfs:// path, or AZURE_STORAGE_ACCOUNT_NAME.",
    "storage.azure.account-key": "Key of the storage account. Default: AZURE_STORAGE_ACCOUNT_KEY, or the identity of "
    "the machine.",
    "storage.azure.sas-token": "Token of a shared access signature. Default: AZURE_STORAGE_SAS_TOKEN.",
}

_TEXTS["storage.fsspec.options"] = (
    'JSON of options for fsspec by scheme, {"sftp": {"username": "me"}}: sftp, ftp, hdfs, smb, webdav and others.'
)
for _name, _place in {**_PLACES, "http": "a server of HTTP"}.items():
    _TEXTS[f"storage.{_name}.ca-file"] = (
        f"File of certificates (PEM) that are trusted for {_place}, beside those of the machine."
    )
for _key, _text in _TEXTS.items():
    _option(_key, "string", None, _text)
for _name, _place in _PLACES.items():
    _option(f"storage.{_name}.anonymous", "bool", "false", f"Read public buckets of {_place} without credentials.")
    _option(f"storage.{_name}.allow-http", "bool", "false", f"Allow an endpoint of {_place} without TLS (http://).")
