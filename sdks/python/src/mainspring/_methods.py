"""Every call of the native contract, once. What ``_do`` gives is the answer for the client that
waits, and something to await for the other one; ``client.pyi`` has the types of both."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, Optional

from ._call import Call, Repeat, body, filled, header, path


def _post(where: str, value: Any = None, repeat: Repeat = Repeat.SAFE, wait: float = 0.0) -> Call:
    return Call("POST", where, None if value is None else body(value), repeat, wait)


def wish(
    job_type: str,
    payload: Any = None,
    *,
    run_at: Optional[str] = None,
    delay_ms: Optional[int] = None,
    priority: Optional[int] = None,
    queue: Optional[str] = None,
    timeout_ms: Optional[int] = None,
    max_retries: Optional[int] = None,
    idempotency_key: Optional[str] = None,
    idempotency_scope: Optional[str] = None,
    trace_id: Optional[str] = None,
    parent_id: Optional[str] = None,
    labels: Optional[Mapping[str, str]] = None,
    subject: Optional[str] = None,
    expires_at: Optional[str] = None,
    deadline_at: Optional[str] = None,
    queue_timeout_ms: Optional[int] = None,
    after: Optional[Iterable[str]] = None,
    after_condition: Optional[str] = None,
    concurrency_key: Optional[str] = None,
) -> dict[str, Any]:
    """The wish for a job, as ``submit`` sends it and ``submit_batch`` takes it."""
    more = filled(
        run_at=run_at,
        delay_ms=delay_ms,
        priority=priority,
        queue=queue,
        timeout_ms=timeout_ms,
        max_retries=max_retries,
        idempotency_key=idempotency_key,
        idempotency_scope=idempotency_scope,
        trace_id=trace_id,
        parent_id=parent_id,
        labels=dict(labels) if labels else None,
        subject=subject,
        expires_at=expires_at,
        deadline_at=deadline_at,
        queue_timeout_ms=queue_timeout_ms,
        after=list(after) if after else None,
        after_condition=after_condition,
        concurrency_key=concurrency_key,
    )
    return {"job_type": job_type, "payload": payload, **more}


class Methods:
    """What both clients can ask."""

    def _do(self, call: Call) -> Any:
        raise NotImplementedError

    # Jobs.

    def submit(
        self, job_type: str, payload: Any = None, *, wait_ms: Optional[int] = None, **options: Any
    ) -> Any:
        """Submits a job; with ``wait_ms``, waits for its end that long. With an idempotency key
        the call is repeated if its answer is lost."""
        job = wish(job_type, payload, **options)
        repeat = Repeat.SAFE if "idempotency_key" in job else Repeat.UNSAFE
        where = path("jobs", query={"wait_ms": wait_ms})
        return self._do(_post(where, job, repeat, (wait_ms or 0) / 1000))

    def submit_batch(
        self, jobs: Iterable[Mapping[str, Any]], *, then: Optional[Mapping[str, Any]] = None
    ) -> Any:
        """Submits up to 10,000 jobs (see ``wish``); each has its own result, in order. ``then``
        waits for all of them and comes last; with it, all are taken or none."""
        listed = [dict(job) for job in jobs]
        every = listed if then is None else [*listed, dict(then)]
        has_keys = all(job.get("idempotency_key") is not None for job in every)
        repeat = Repeat.SAFE if has_keys else Repeat.UNSAFE
        batch = {"jobs": listed} if then is None else {"jobs": listed, "then": dict(then)}
        return self._do(_post(path("jobs", "batch"), batch, repeat))

    def job(self, job_id: str, *, wait_ms: Optional[int] = None) -> Any:
        """One job; with ``wait_ms``, waits for its end that long."""
        where = path("jobs", job_id, query={"wait_ms": wait_ms})
        return self._do(Call("GET", where, wait=(wait_ms or 0) / 1000))

    def jobs(
        self,
        *,
        status: Optional[str] = None,
        job_type: Optional[str] = None,
        queue: Optional[str] = None,
        trace_id: Optional[str] = None,
        user_id: Optional[str] = None,
        error_code: Optional[str] = None,
        parent_id: Optional[str] = None,
        labels: Optional[Mapping[str, str]] = None,
        created_after: Optional[str] = None,
        created_before: Optional[str] = None,
        cursor: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> Any:
        """A page of jobs, newest first."""
        query = filled(
            status=status,
            type=job_type,
            queue=queue,
            trace_id=trace_id,
            user_id=user_id,
            error_code=error_code,
            parent_id=parent_id,
            created_after=created_after,
            created_before=created_before,
            cursor=cursor,
            limit=limit,
            label=[f"{name}={value}" for name, value in (labels or {}).items()] or None,
        )
        return self._do(Call("GET", path("jobs", query=query)))

    def job_events(self, job_id: str) -> Any:
        """A job's history."""
        return self._do(Call("GET", path("jobs", job_id, "events")))

    def explain(self, job_id: str) -> Any:
        """Why a job is not running yet."""
        return self._do(Call("GET", path("jobs", job_id, "explain")))

    def cancel(self, job_id: str, reason: Optional[str] = None) -> Any:
        """Ends a job that is not finished."""
        return self._do(
            _post(path("jobs", job_id, "cancel"), filled(reason=reason), Repeat.UNSAFE)
        )

    # Types, queues, the server.

    def types(self) -> Any:
        """Every registered type, by name."""
        return self._do(Call("GET", path("types")))

    def job_type(self, name: str) -> Any:
        """One type."""
        return self._do(Call("GET", path("types", name)))

    def set_type(
        self,
        name: str,
        *,
        domain: Optional[str] = None,
        schedulable: Optional[bool] = None,
        priority: Optional[int] = None,
        timeout_seconds: Optional[int] = None,
        max_retries: Optional[int] = None,
        concurrency_limit: Optional[int] = None,
        concurrency_scope: Optional[str] = None,
        queue: Optional[str] = None,
        backoff_base_ms: Optional[int] = None,
        backoff_max_ms: Optional[int] = None,
    ) -> Any:
        """Registers or replaces a type."""
        spec = filled(
            domain=domain,
            schedulable=schedulable,
            priority=priority,
            timeout_seconds=timeout_seconds,
            max_retries=max_retries,
            concurrency_limit=concurrency_limit,
            concurrency_scope=concurrency_scope,
            queue=queue,
            backoff_base_ms=backoff_base_ms,
            backoff_max_ms=backoff_max_ms,
        )
        return self._do(Call("PUT", path("types", name), body(spec)))

    def queues(self) -> Any:
        """Every queue with its numbers."""
        return self._do(Call("GET", path("queues")))

    def pause_queue(self, name: str) -> Any:
        """Stops a queue from handing out jobs."""
        return self._do(_post(path("queues", name, "pause")))

    def resume_queue(self, name: str) -> Any:
        """Lets a queue hand out jobs again."""
        return self._do(_post(path("queues", name, "resume")))

    def runtime(self) -> Any:
        """The server at a glance."""
        return self._do(Call("GET", path("runtime")))

    def whoami(self) -> Any:
        """Whose token this is: tenant, user and roles."""
        return self._do(Call("GET", path("whoami")))

    # Schedules.

    def create_schedule(self, schedule: Mapping[str, Any]) -> Any:
        """Makes a schedule; at least ``job_type``, ``kind`` and what the kind needs."""
        return self._do(_post(path("schedules"), dict(schedule), Repeat.UNSAFE))

    def schedules(
        self,
        *,
        status: Optional[str] = None,
        job_type: Optional[str] = None,
        owner: Optional[str] = None,
        cursor: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> Any:
        """A page of schedules, newest first."""
        query = filled(status=status, job_type=job_type, owner=owner, cursor=cursor, limit=limit)
        return self._do(Call("GET", path("schedules", query=query)))

    def schedule(self, schedule_id: str) -> Any:
        """One schedule."""
        return self._do(Call("GET", path("schedules", schedule_id)))

    def update_schedule(self, schedule_id: str, schedule: Mapping[str, Any]) -> Any:
        """Has a schedule do something else from now on: all of it is replaced."""
        return self._do(Call("PUT", path("schedules", schedule_id), body(dict(schedule))))

    def delete_schedule(self, schedule_id: str) -> Any:
        """Takes a schedule away."""
        return self._do(Call("DELETE", path("schedules", schedule_id), repeat=Repeat.UNSAFE))

    def pause_schedule(self, schedule_id: str, note: Optional[str] = None) -> Any:
        """Has a schedule rest until it is resumed."""
        return self._do(_post(path("schedules", schedule_id, "pause"), filled(note=note)))

    def resume_schedule(self, schedule_id: str) -> Any:
        """Has a paused schedule go on with what is due from now on."""
        return self._do(_post(path("schedules", schedule_id, "resume")))

    def stop_schedule(self, schedule_id: str) -> Any:
        """Ends a schedule for good; it can still be read."""
        return self._do(_post(path("schedules", schedule_id, "stop")))

    def trigger_schedule(self, schedule_id: str) -> Any:
        """Makes a job of a schedule now."""
        where = path("schedules", schedule_id, "trigger")
        return self._do(_post(where, repeat=Repeat.UNSAFE))

    def preview_schedule(
        self, schedule_id: str, *, count: Optional[int] = None, start: Optional[str] = None
    ) -> Any:
        """When a schedule will fire."""
        query = {"count": count, "from": start}
        return self._do(Call("GET", path("schedules", schedule_id, "preview", query=query)))

    def schedule_history(self, schedule_id: str) -> Any:
        """What became of a schedule's latest firings."""
        return self._do(Call("GET", path("schedules", schedule_id, "history")))

    # Work. ``Worker`` makes all of these for you; here they are sent once.

    def pull(
        self,
        worker_id: str,
        *,
        types: Optional[Iterable[str]] = None,
        queues: Optional[Iterable[str]] = None,
        limit: Optional[int] = None,
        wait_ms: Optional[int] = None,
        lease_ms: Optional[int] = None,
    ) -> Any:
        """Fetches jobs, waiting for the first one as long as ``wait_ms`` says."""
        asked = filled(
            worker_id=worker_id,
            types=None if types is None else list(types),
            queues=None if queues is None else list(queues),
            limit=limit,
            wait_ms=wait_ms,
            lease_ms=lease_ms,
        )
        wait = (wait_ms or 0) / 1000
        return self._do(_post(path("work", "pull"), asked, Repeat.NEVER, wait))

    def complete(
        self, items: Iterable[Mapping[str, Any]], *, pull: Optional[Mapping[str, Any]] = None
    ) -> Any:
        """Reports successes, and fetches more if there is a ``pull``."""
        return self._do(_report("complete", items, pull))

    def fail(
        self, items: Iterable[Mapping[str, Any]], *, pull: Optional[Mapping[str, Any]] = None
    ) -> Any:
        """Reports failures, and fetches more if there is a ``pull``."""
        return self._do(_report("fail", items, pull))

    def release(
        self, items: Iterable[Mapping[str, Any]], *, pull: Optional[Mapping[str, Any]] = None
    ) -> Any:
        """Gives attempts back unused, and fetches more if there is a ``pull``."""
        return self._do(_report("release", items, pull))

    def heartbeat(
        self,
        worker_id: str,
        items: Iterable[Mapping[str, Any]],
        *,
        lease_ms: Optional[int] = None,
    ) -> Any:
        """Renews leases and learns which are lost or cancelled."""
        beat = filled(worker_id=worker_id, lease_ms=lease_ms, items=[dict(item) for item in items])
        return self._do(_post(path("work", "heartbeat"), beat, Repeat.NEVER))

    def leave(self, worker_id: str) -> Any:
        """Says that a worker is about to stop: its waiting pulls are answered at once."""
        return self._do(_post(path("work", "leave"), {"worker_id": worker_id}))

    def effect(self, job_id: str, name: str, lease_token: str) -> Any:
        """A committed side effect; only the holder of the lease may look."""
        return self._do(effect(job_id, name, lease_token))

    def commit_effect(self, job_id: str, name: str, lease_token: str, value: Any) -> Any:
        """Commits a side effect once; answers the value of the first commit."""
        return self._do(commit_effect(job_id, name, lease_token, value))


def _report(
    verb: str, items: Iterable[Mapping[str, Any]], pull: Optional[Mapping[str, Any]]
) -> Call:
    said = filled(items=[dict(item) for item in items], pull=dict(pull) if pull else None)
    return _post(path("work", verb), said, Repeat.NEVER)


def effect(job_id: str, name: str, lease_token: str) -> Call:
    token = {"X-Lease-Token": header(lease_token, "the lease token")}
    return Call("GET", path("work", "effects", job_id, name), headers=token)


def commit_effect(job_id: str, name: str, lease_token: str, value: Any) -> Call:
    said = {"lease_token": lease_token, "value": value}
    return Call("PUT", path("work", "effects", job_id, name), body(said))
