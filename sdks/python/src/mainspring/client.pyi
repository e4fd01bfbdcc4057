"""The types of the two clients; both are implemented by ``_methods.py``."""

from typing import Any, Iterable, Mapping, Optional

from ._call import Settings
from .wire import (
    Beaten,
    Effect,
    Explanation,
    History,
    Job,
    JobPage,
    JobType,
    Pulled,
    Reported,
    SubmittedBatch,
    TypePage,
)

__all__ = ["AsyncClient", "Client", "wish"]

def wish(
    job_type: str,
    payload: Any = ...,
    *,
    run_at: Optional[str] = ...,
    delay_ms: Optional[int] = ...,
    priority: Optional[int] = ...,
    queue: Optional[str] = ...,
    timeout_ms: Optional[int] = ...,
    max_retries: Optional[int] = ...,
    idempotency_key: Optional[str] = ...,
    idempotency_scope: Optional[str] = ...,
    trace_id: Optional[str] = ...,
    parent_id: Optional[str] = ...,
    labels: Optional[Mapping[str, str]] = ...,
    subject: Optional[str] = ...,
    expires_at: Optional[str] = ...,
    deadline_at: Optional[str] = ...,
    queue_timeout_ms: Optional[int] = ...,
    after: Optional[Iterable[str]] = ...,
    after_condition: Optional[str] = ...,
    concurrency_key: Optional[str] = ...,
) -> dict[str, Any]: ...

class Client:
    settings: Settings
    def __init__(
        self,
        url: Optional[str] = ...,
        token: Optional[str] = ...,
        *,
        trace_id: Optional[str] = ...,
        ca_file: Optional[str] = ...,
    ) -> None: ...
    def submit(
        self,
        job_type: str,
        payload: Any = ...,
        *,
        wait_ms: Optional[int] = ...,
        run_at: Optional[str] = ...,
        delay_ms: Optional[int] = ...,
        priority: Optional[int] = ...,
        queue: Optional[str] = ...,
        timeout_ms: Optional[int] = ...,
        max_retries: Optional[int] = ...,
        idempotency_key: Optional[str] = ...,
        idempotency_scope: Optional[str] = ...,
        trace_id: Optional[str] = ...,
        parent_id: Optional[str] = ...,
        labels: Optional[Mapping[str, str]] = ...,
        subject: Optional[str] = ...,
        expires_at: Optional[str] = ...,
        deadline_at: Optional[str] = ...,
        queue_timeout_ms: Optional[int] = ...,
        after: Optional[Iterable[str]] = ...,
        after_condition: Optional[str] = ...,
        concurrency_key: Optional[str] = ...,
    ) -> Job: ...
    def submit_batch(
        self, jobs: Iterable[Mapping[str, Any]], *, then: Optional[Mapping[str, Any]] = ...
    ) -> SubmittedBatch: ...
    def job(self, job_id: str, *, wait_ms: Optional[int] = ...) -> Job: ...
    def jobs(
        self,
        *,
        status: Optional[str] = ...,
        job_type: Optional[str] = ...,
        queue: Optional[str] = ...,
        trace_id: Optional[str] = ...,
        user_id: Optional[str] = ...,
        error_code: Optional[str] = ...,
        labels: Optional[Mapping[str, str]] = ...,
        created_after: Optional[str] = ...,
        created_before: Optional[str] = ...,
        cursor: Optional[str] = ...,
        limit: Optional[int] = ...,
    ) -> JobPage: ...
    def job_events(self, job_id: str) -> History: ...
    def explain(self, job_id: str) -> Explanation: ...
    def cancel(self, job_id: str, reason: Optional[str] = ...) -> Job: ...
    def types(self) -> TypePage: ...
    def job_type(self, name: str) -> JobType: ...
    def set_type(
        self,
        name: str,
        *,
        domain: Optional[str] = ...,
        schedulable: Optional[bool] = ...,
        priority: Optional[int] = ...,
        timeout_seconds: Optional[int] = ...,
        max_retries: Optional[int] = ...,
        concurrency_limit: Optional[int] = ...,
        concurrency_scope: Optional[str] = ...,
        queue: Optional[str] = ...,
        backoff_base_ms: Optional[int] = ...,
        backoff_max_ms: Optional[int] = ...,
    ) -> JobType: ...
    def queues(self) -> Mapping[str, Any]: ...
    def pause_queue(self, name: str) -> Mapping[str, Any]: ...
    def resume_queue(self, name: str) -> Mapping[str, Any]: ...
    def runtime(self) -> Mapping[str, Any]: ...
    def whoami(self) -> Mapping[str, Any]: ...
    def create_schedule(self, schedule: Mapping[str, Any]) -> Mapping[str, Any]: ...
    def schedules(
        self,
        *,
        status: Optional[str] = ...,
        job_type: Optional[str] = ...,
        owner: Optional[str] = ...,
        cursor: Optional[str] = ...,
        limit: Optional[int] = ...,
    ) -> Mapping[str, Any]: ...
    def schedule(self, schedule_id: str) -> Mapping[str, Any]: ...
    def update_schedule(
        self,
        schedule_id: str,
        schedule: Mapping[str, Any],
    ) -> Mapping[str, Any]: ...
    def delete_schedule(self, schedule_id: str) -> Mapping[str, Any]: ...
    def pause_schedule(self, schedule_id: str, note: Optional[str] = ...) -> Mapping[str, Any]: ...
    def resume_schedule(self, schedule_id: str) -> Mapping[str, Any]: ...
    def stop_schedule(self, schedule_id: str) -> Mapping[str, Any]: ...
    def trigger_schedule(self, schedule_id: str) -> Mapping[str, Any]: ...
    def preview_schedule(
        self,
        schedule_id: str,
        *,
        count: Optional[int] = ...,
        start: Optional[str] = ...,
    ) -> Mapping[str, Any]: ...
    def schedule_history(self, schedule_id: str) -> Mapping[str, Any]: ...
    def pull(
        self,
        worker_id: str,
        *,
        types: Optional[Iterable[str]] = ...,
        queues: Optional[Iterable[str]] = ...,
        limit: Optional[int] = ...,
        wait_ms: Optional[int] = ...,
        lease_ms: Optional[int] = ...,
    ) -> Pulled: ...
    def complete(
        self,
        items: Iterable[Mapping[str, Any]],
        *,
        pull: Optional[Mapping[str, Any]] = ...,
    ) -> Reported: ...
    def fail(
        self,
        items: Iterable[Mapping[str, Any]],
        *,
        pull: Optional[Mapping[str, Any]] = ...,
    ) -> Reported: ...
    def release(
        self,
        items: Iterable[Mapping[str, Any]],
        *,
        pull: Optional[Mapping[str, Any]] = ...,
    ) -> Reported: ...
    def heartbeat(
        self,
        worker_id: str,
        items: Iterable[Mapping[str, Any]],
        *,
        lease_ms: Optional[int] = ...,
    ) -> Beaten: ...
    def leave(self, worker_id: str) -> Mapping[str, Any]: ...
    def effect(self, job_id: str, name: str, lease_token: str) -> Effect: ...
    def commit_effect(self, job_id: str, name: str, lease_token: str, value: Any) -> Effect: ...
    def close(self) -> None: ...
    def __enter__(self) -> Client: ...
    def __exit__(self, *_: object) -> None: ...

class AsyncClient:
    settings: Settings
    def __init__(
        self,
        url: Optional[str] = ...,
        token: Optional[str] = ...,
        *,
        trace_id: Optional[str] = ...,
        ca_file: Optional[str] = ...,
    ) -> None: ...
    async def submit(
        self,
        job_type: str,
        payload: Any = ...,
        *,
        wait_ms: Optional[int] = ...,
        run_at: Optional[str] = ...,
        delay_ms: Optional[int] = ...,
        priority: Optional[int] = ...,
        queue: Optional[str] = ...,
        timeout_ms: Optional[int] = ...,
        max_retries: Optional[int] = ...,
        idempotency_key: Optional[str] = ...,
        idempotency_scope: Optional[str] = ...,
        trace_id: Optional[str] = ...,
        parent_id: Optional[str] = ...,
        labels: Optional[Mapping[str, str]] = ...,
        subject: Optional[str] = ...,
        expires_at: Optional[str] = ...,
        deadline_at: Optional[str] = ...,
        queue_timeout_ms: Optional[int] = ...,
        after: Optional[Iterable[str]] = ...,
        after_condition: Optional[str] = ...,
        concurrency_key: Optional[str] = ...,
    ) -> Job: ...
    async def submit_batch(
        self, jobs: Iterable[Mapping[str, Any]], *, then: Optional[Mapping[str, Any]] = ...
    ) -> SubmittedBatch: ...
    async def job(self, job_id: str, *, wait_ms: Optional[int] = ...) -> Job: ...
    async def jobs(
        self,
        *,
        status: Optional[str] = ...,
        job_type: Optional[str] = ...,
        queue: Optional[str] = ...,
        trace_id: Optional[str] = ...,
        user_id: Optional[str] = ...,
        error_code: Optional[str] = ...,
        labels: Optional[Mapping[str, str]] = ...,
        created_after: Optional[str] = ...,
        created_before: Optional[str] = ...,
        cursor: Optional[str] = ...,
        limit: Optional[int] = ...,
    ) -> JobPage: ...
    async def job_events(self, job_id: str) -> History: ...
    async def explain(self, job_id: str) -> Explanation: ...
    async def cancel(self, job_id: str, reason: Optional[str] = ...) -> Job: ...
    async def types(self) -> TypePage: ...
    async def job_type(self, name: str) -> JobType: ...
    async def set_type(
        self,
        name: str,
        *,
        domain: Optional[str] = ...,
        schedulable: Optional[bool] = ...,
        priority: Optional[int] = ...,
        timeout_seconds: Optional[int] = ...,
        max_retries: Optional[int] = ...,
        concurrency_limit: Optional[int] = ...,
        concurrency_scope: Optional[str] = ...,
        queue: Optional[str] = ...,
        backoff_base_ms: Optional[int] = ...,
        backoff_max_ms: Optional[int] = ...,
    ) -> JobType: ...
    async def queues(self) -> Mapping[str, Any]: ...
    async def pause_queue(self, name: str) -> Mapping[str, Any]: ...
    async def resume_queue(self, name: str) -> Mapping[str, Any]: ...
    async def runtime(self) -> Mapping[str, Any]: ...
    async def whoami(self) -> Mapping[str, Any]: ...
    async def create_schedule(self, schedule: Mapping[str, Any]) -> Mapping[str, Any]: ...
    async def schedules(
        self,
        *,
        status: Optional[str] = ...,
        job_type: Optional[str] = ...,
        owner: Optional[str] = ...,
        cursor: Optional[str] = ...,
        limit: Optional[int] = ...,
    ) -> Mapping[str, Any]: ...
    async def schedule(self, schedule_id: str) -> Mapping[str, Any]: ...
    async def update_schedule(
        self,
        schedule_id: str,
        schedule: Mapping[str, Any],
    ) -> Mapping[str, Any]: ...
    async def delete_schedule(self, schedule_id: str) -> Mapping[str, Any]: ...
    async def pause_schedule(
        self,
        schedule_id: str,
        note: Optional[str] = ...,
    ) -> Mapping[str, Any]: ...
    async def resume_schedule(self, schedule_id: str) -> Mapping[str, Any]: ...
    async def stop_schedule(self, schedule_id: str) -> Mapping[str, Any]: ...
    async def trigger_schedule(self, schedule_id: str) -> Mapping[str, Any]: ...
    async def preview_schedule(
        self,
        schedule_id: str,
        *,
        count: Optional[int] = ...,
        start: Optional[str] = ...,
    ) -> Mapping[str, Any]: ...
    async def schedule_history(self, schedule_id: str) -> Mapping[str, Any]: ...
    async def pull(
        self,
        worker_id: str,
        *,
        types: Optional[Iterable[str]] = ...,
        queues: Optional[Iterable[str]] = ...,
        limit: Optional[int] = ...,
        wait_ms: Optional[int] = ...,
        lease_ms: Optional[int] = ...,
    ) -> Pulled: ...
    async def complete(
        self,
        items: Iterable[Mapping[str, Any]],
        *,
        pull: Optional[Mapping[str, Any]] = ...,
    ) -> Reported: ...
    async def fail(
        self,
        items: Iterable[Mapping[str, Any]],
        *,
        pull: Optional[Mapping[str, Any]] = ...,
    ) -> Reported: ...
    async def release(
        self,
        items: Iterable[Mapping[str, Any]],
        *,
        pull: Optional[Mapping[str, Any]] = ...,
    ) -> Reported: ...
    async def heartbeat(
        self,
        worker_id: str,
        items: Iterable[Mapping[str, Any]],
        *,
        lease_ms: Optional[int] = ...,
    ) -> Beaten: ...
    async def leave(self, worker_id: str) -> Mapping[str, Any]: ...
    async def effect(self, job_id: str, name: str, lease_token: str) -> Effect: ...
    async def commit_effect(
        self,
        job_id: str,
        name: str,
        lease_token: str,
        value: Any,
    ) -> Effect: ...
    async def close(self) -> None: ...
    async def __aenter__(self) -> AsyncClient: ...
    async def __aexit__(self, *_: object) -> None: ...
