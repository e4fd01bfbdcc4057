"""What answers look like: plain dictionaries with known fields. Answers may grow new ones."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, TypedDict


class ErrorCode(TypedDict):
    """What went wrong with one item of a list."""

    code: str
    message: str


class LastError(TypedDict):
    """The last failure of a job."""

    code: str
    message: str
    retryable: bool
    at: str
    exhausted: bool


class _Job(TypedDict):
    job_id: str
    status: str


class Job(_Job, total=False):
    """A job. Of one that this caller may not read, only ``job_id`` and ``status`` are there."""

    tenant_id: str
    user_id: str
    job_type: str
    queue: str
    priority: int
    retry_count: int
    attempt: int
    max_retries: int
    timeout_ms: int
    idempotency_key: Optional[str]
    idempotency_scope: Optional[str]
    trace_id: str
    error_code: Optional[str]
    last_error: Optional[LastError]
    payload: Any
    payload_json: str
    result: Any
    run_at: str
    created_at: str
    updated_at: str
    started_at: Optional[str]
    finished_at: Optional[str]
    next_retry_at: Optional[str]
    expires_at: Optional[str]
    lease: Optional[Dict[str, Any]]
    parent_id: Optional[str]
    source_dlq_id: Optional[str]
    dlq_id: Optional[str]
    labels: Dict[str, str]
    subject: Optional[str]
    progress_pct: Optional[int]
    idempotent_hit: bool


class SubmittedItem(TypedDict, total=False):
    """What became of one job of a batch: the first three fields, or ``error``."""

    job_id: str
    status: str
    idempotent_hit: bool
    error: ErrorCode


class SubmittedBatch(TypedDict):
    """What became of a batch, in order."""

    items: List[SubmittedItem]


class JobEvent(TypedDict):
    """One line of a job's history."""

    seq: int
    event_id: str
    from_state: Optional[str]
    to_state: str
    occurred_at: str
    attempt: int
    reason_code: Optional[str]
    reason_message: Optional[str]
    actor: str
    trace_id: str


class History(TypedDict):
    """A job's whole history."""

    items: List[JobEvent]


class EstimatedStart(TypedDict):
    """When a waiting job may be expected to start. An estimate, not a promise."""

    at: Optional[str]
    basis: str
    message: str


class Explanation(TypedDict):
    """Why a job is not running yet."""

    job_id: str
    status: str
    summary: str
    reasons: List[ErrorCode]
    earliest_at: Optional[str]
    estimated_start: Optional[EstimatedStart]


class JobType(TypedDict):
    """A kind of work and what is promised for it."""

    job_type: str
    domain: str
    schedulable: bool
    priority: int
    timeout_seconds: int
    max_retries: int
    concurrency_limit: Optional[int]
    concurrency_scope: str
    queue: str
    backoff_base_ms: int
    backoff_max_ms: int


class PulledJob(TypedDict):
    """A job as its worker gets it."""

    job_id: str
    job_type: str
    payload: Any
    attempt: int
    retry_count: int
    lease_token: str
    lease_expires_at: str
    deadline_at: str
    execution_key: str
    trace_id: str
    labels: Dict[str, str]


class Pulled(TypedDict):
    """The jobs a pull got."""

    jobs: List[PulledJob]


class _ReportedItem(TypedDict):
    job_id: str


class ReportedItem(_ReportedItem, total=False):
    """What became of one report: ``status``, or ``error``."""

    status: str
    error: ErrorCode


class _Reported(TypedDict):
    items: List[ReportedItem]


class Reported(_Reported, total=False):
    """What became of the reports, in order, and the jobs of the pull that came with them."""

    jobs: List[PulledJob]


class BeatenItem(_ReportedItem, total=False):
    """The lease of one attempt: its new end, or ``lost``, or ``cancelled``."""

    lease_expires_at: str
    lost: bool
    cancelled: bool


class Beaten(TypedDict):
    """Which leases live on, in order."""

    items: List[BeatenItem]


class Effect(TypedDict):
    """A committed side effect."""

    job_id: str
    name: str
    value: Any
    is_first: bool


class JobPage(TypedDict):
    """A part of a list of jobs; ``next_cursor`` leads to the next one."""

    items: List[Job]
    next_cursor: Optional[str]
    total: Optional[int]


class TypePage(TypedDict):
    """All types."""

    items: List[JobType]
    next_cursor: Optional[str]
    total: Optional[int]
