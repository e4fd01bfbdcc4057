"""What is said to the server about finished attempts. A report is repeated until it is accepted or
refused: a repeat is answered like the first time, so a lost answer loses nothing. The wish that
rides along is sent once only, because a lost answer may hold jobs."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any, List, Mapping, Optional, Tuple

from ._aio import AsyncTransport
from ._call import Call, Repeat, dumps, path, pause
from ._limits import CODE_BYTES_MAX, MESSAGE_BYTES_MAX
from .errors import Error, Failure, Unreadable

log = logging.getLogger("mainspring")

#: The code of a failure whose own words the server refused.
REPORT_REFUSED = "REPORT_REFUSED"
#: Codes of refusals that are about the lease, not about what was said.
ABOUT_LEASE = ("LEASE_LOST", "REPORT_CONFLICT")


@dataclass(frozen=True)
class Report:
    """The last word on one attempt."""

    #: ``complete``, ``fail`` or ``release``.
    kind: str
    job_id: str
    lease_token: str
    #: The item as JSON text.
    text: str
    failure: Optional[Failure] = None

    def instead(self, why: str) -> Optional[Report]:
        """What to say instead of a report that was refused for what it says, if there is
        something left to say."""
        if self.kind == "complete":
            return fail(self.job_id, self.lease_token, Failure.permanent("RESULT_REFUSED", why))
        if self.failure is not None and self.failure.code != REPORT_REFUSED:
            had = self.failure
            failure = Failure(
                REPORT_REFUSED, why, retryable=had.retryable, retry_delay=had.retry_delay
            )
            return fail(self.job_id, self.lease_token, failure)
        return None


def complete(job_id: str, lease_token: str, result: Optional[str]) -> Report:
    """The attempt succeeded, perhaps with a result, as JSON text."""
    more = "" if result is None else f',"result":{result}'
    return Report("complete", job_id, lease_token, _item(job_id, lease_token, more))


def fail(job_id: str, lease_token: str, failure: Failure) -> Report:
    """The attempt failed."""
    said: dict[str, Any] = {
        "error_code": _cut(failure.code, CODE_BYTES_MAX),
        "message": _cut(failure.message, MESSAGE_BYTES_MAX),
        "retryable": failure.retryable,
    }
    if failure.snooze_for is not None:
        said["snooze_ms"] = max(0, int(failure.snooze_for * 1000))
    elif failure.retry_delay is not None:
        said["retry_delay_ms"] = max(0, int(failure.retry_delay * 1000))
    more = "," + dumps(said)[1:-1]
    return Report("fail", job_id, lease_token, _item(job_id, lease_token, more), failure)


def release(job_id: str, lease_token: str, reason: str) -> Report:
    """The attempt is given back unused."""
    more = f',"reason":{dumps(_cut(reason, MESSAGE_BYTES_MAX))}'
    return Report("release", job_id, lease_token, _item(job_id, lease_token, more))


def _item(job_id: str, lease_token: str, more: str) -> str:
    return f'{{"job_id":{dumps(job_id)},"lease_token":{dumps(lease_token)}{more}}}'


@dataclass
class Told:
    """What came of a batch of reports of one kind."""

    #: Slots that were kept for jobs.
    reserved: int
    #: The reports as they were last sent, each with why it was refused, if it was.
    reports: List[Tuple[Report, Optional[str]]] = field(default_factory=list)
    jobs: List[Any] = field(default_factory=list)
    #: Reports that were not delivered at the first try, to be repeated after this long, without
    #: the wish, so that no slot is kept for jobs that will not come.
    later: Optional[Tuple[List[Report], float]] = None


async def tell(
    transport: AsyncTransport, reports: List[Report], wish: Optional[Mapping[str, Any]]
) -> Told:
    """Sends reports of one kind until they are accepted or refused.

    If the server refuses a call as a whole, its halves are sent apart, so that one report never
    spoils its neighbours. A report that it refuses for what it says becomes a failure that says
    so: the attempt must not end as a lost lease.
    """
    told = Told(reserved=wish["limit"] if wish else 0)
    parts = [reports]
    while parts:
        part = parts.pop()
        with_wish, wish = wish, None
        try:
            answer = await _deliver(transport, part, with_wish)
        except Error as error:
            if error.is_retryable:
                told.later = (part, pause(1, error))
            elif len(part) > 1:
                middle = len(part) // 2
                parts += [part[middle:], part[:middle]]
            else:
                is_about_content = error.status in (400, 413, 422)
                _other_words(part[0], str(error), is_about_content, parts, told)
            continue
        jobs = answer.get("jobs")
        told.jobs += jobs if isinstance(jobs, list) else []
        for report, item in zip(part, answer["items"]):
            refusal = item.get("error")
            if refusal is None:
                told.reports.append((report, None))
                continue
            told_by = refusal if isinstance(refusal, dict) else {}
            code = told_by.get("code")
            why = f"{code}: {told_by.get('message')}"
            _other_words(report, why, code not in ABOUT_LEASE, parts, told)
    return told


def _other_words(
    report: Report, why: str, is_about_content: bool, parts: List[List[Report]], told: Told
) -> None:
    instead = report.instead(why) if is_about_content else None
    if instead is None:
        told.reports.append((report, why))
    else:
        parts.append([instead])


async def _deliver(
    transport: AsyncTransport, part: List[Report], wish: Optional[Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Repeats the call until it is answered, unless it came with a wish: that is sent once."""
    pull = "" if wish is None else f',"pull":{dumps(wish)}'
    text = '{"items":[' + ",".join(report.text for report in part) + "]" + pull + "}"
    call = Call("POST", path("work", part[0].kind), text.encode(), Repeat.NEVER)
    tries = 0
    while True:
        try:
            answer = await transport.call(call)
            if not is_about(answer, [report.job_id for report in part]):
                # Halved and repeated: nothing is believed to be taken that was not said to be.
                raise Unreadable("report", 200, "it is about other jobs than it should be")
            taken: Mapping[str, Any] = answer
            return taken
        except Error as error:
            if not error.is_retryable or wish is not None:
                raise
            tries += 1
            log.warning("a report could not be delivered; trying again: %s", error)
            await asyncio.sleep(pause(tries, error))


def is_about(answer: Any, asked: List[str]) -> bool:
    """Whether an answer is about the jobs that were asked about, in order. An item that the
    server could not read has no job."""
    items = answer.get("items") if isinstance(answer, dict) else None
    if not isinstance(items, list) or len(items) != len(asked):
        return False
    return all(
        isinstance(item, dict) and item.get("job_id") in (job_id, "")
        for item, job_id in zip(items, asked)
    )


def _cut(text: str, bytes_max: int) -> str:
    return str(text).encode("utf-8", "replace")[:bytes_max].decode("utf-8", "ignore")
