"""Settings of the components that a JobManager runs while it leads, and the stores in which they keep jobs.

    leading_settings(configuration, rpc) │ leading_stores(configuration, places, jobs, blobs) ─► ``LeadingComponents``

Held by: tests/dispatcher/test_leading_components.py
"""

from __future__ import annotations

from functools import partial

from engine.blob.blob_server import BlobServer
from engine.clock import Clock
from engine.config.limit_options import USER_JOBS_LIMIT, USER_SLOTS_LIMIT
from engine.config.loader import Configuration
from engine.config.options import (
    HA_TYPE,
    HEARTBEAT_INTERVAL,
    HEARTBEAT_TIMEOUT,
    JOB_STORE_CACHE,
    JOB_STORE_CAPACITY,
    JOB_STORE_EXPIRATION,
    LOAD_BALANCE_MODE,
    RUNNING_JOBS_MAX,
)
from engine.dispatcher.end_notices import EndNotices
from engine.dispatcher.job_archive import JobArchive
from engine.dispatcher.job_storage import StoredJobs
from engine.dispatcher.job_store import JobStore
from engine.dispatcher.leading_components import LeadingSettings, LeadingStores
from engine.entrypoint.storage_places import StoragePlaces
from engine.jobmaster.job_master_settings import job_master_settings
from engine.resourcemanager.resource_manager import RESOURCE_MANAGER_ADDRESS, ResourceManagerSettings
from engine.rpc.gateway import RpcService
from engine.rpc.leadership import Leadership
from ha.interfaces import StateHandleStore

#: number of tries to open the storage before a leader gives up, some three seconds
STORAGE_TRIES = 5


def job_store(configuration: Configuration, folder: str, clock: Clock) -> JobStore:
    """Return the ended jobs that lie in ``folder``; one that cannot be read at present is read later."""
    return JobStore(
        configuration.get(JOB_STORE_CAPACITY),
        JobArchive(folder),
        configuration.get(JOB_STORE_CACHE),
        configuration.get(JOB_STORE_EXPIRATION),
        clock,
        is_patient=True,
    )


def leading_settings(configuration: Configuration, rpc: RpcService) -> LeadingSettings:
    """Return the settings of the components that lead in a JobManager."""
    return LeadingSettings(
        job_master_settings(configuration, rpc.address_of(RESOURCE_MANAGER_ADDRESS), "exponential-delay"),
        ResourceManagerSettings(
            configuration.get(HEARTBEAT_INTERVAL) / 1000,
            configuration.get(HEARTBEAT_TIMEOUT) / 1000,
            is_spread=configuration.get(LOAD_BALANCE_MODE) == "SLOTS",
            running_jobs_max=configuration.get(RUNNING_JOBS_MAX),
            user_jobs_max=configuration.get(USER_JOBS_LIMIT),
            user_slots_max=configuration.get(USER_SLOTS_LIMIT),
        ),
    )


def leading_stores(
    configuration: Configuration,
    places: StoragePlaces,
    handles: StateHandleStore,
    leadership: Leadership,
    blobs: BlobServer,
    notices: EndNotices | None = None,
) -> LeadingStores:
    """Return the stores of the components of a leadership."""
    return LeadingStores(
        StoredJobs(places.folder, handles, leadership.epoch, leadership.is_leading, places.is_durable),
        partial(job_store, configuration, places.history, leadership.clock),
        (notices or EndNotices()).tell,
        blobs.remove_job,
        # Where another one may lead, it may have the folder that this one lacks.
        STORAGE_TRIES if configuration.get(HA_TYPE) == "ZOOKEEPER" else None,
    )
