"""``python -m job_orchestration.cli``: thirteen commands that speak to ``/jobs`` of a live server.

Every command prints one indented JSON document: ``{success, data, runtime}``, or ``{success,
error}``. The exit code is 0 whatever the server answered, 1 without a command, 2 for arguments
that make none. ``MAINSPRING_URL`` and ``MAINSPRING_TOKEN`` say where the server is and who asks.

``--user-id`` must be the token's own user. An admin's token may name anybody whose tasks and
schedules are to be read or steered; nobody makes them in somebody else's name.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Callable, Dict, List, NoReturn, Optional, Sequence

from mainspring import Error, Refused, Unreachable
from mainspring._call import Call, Repeat, Settings, body, dumps, path
from mainspring._transport import Transport

#: One document to print.
Document = Dict[str, Any]

_JOB_DENIED = "JOB_ACCESS_DENIED"
_SCHEDULE_DENIED = "SCHEDULE_ACCESS_DENIED"


class _Wrong(Exception):
    """An answer that goes wrong without the server."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class _Desk:
    """The way to the server, and who asks there."""

    def __init__(self) -> None:
        self.transport = Transport(Settings.of(None, None, None))

    def get(self, *parts: str, **query: Any) -> Any:
        return self.transport.call(Call("GET", path("jobs", *parts, query=query, base="")))

    def post(self, *parts: str, value: Any = None, repeat: Repeat = Repeat.UNSAFE) -> Any:
        sent = value if isinstance(value, bytes) or value is None else body(value)
        return self.transport.call(Call("POST", path("jobs", *parts, base=""), sent, repeat))

    def runtime(self) -> Any:
        """How the server is, as far as this token may know."""
        return self.get("schedules", limit=1)["runtime"]

    def is_own(self, user_id: str, denied: str) -> bool:
        """Whether the token is the user's own. If it is neither that nor an admin's, the answer
        is the one about things that are not there."""
        caller = self.transport.call(Call("GET", path("whoami")))
        if caller["user_id"] == user_id:
            return True
        if "admin" not in caller["roles"]:
            _deny(denied)
        return False

    def owned(self, user_id: str, thing: str, *parts: str) -> Any:
        """A job or schedule that the user has; an admin sees those of others, too."""
        denied = _SCHEDULE_DENIED if thing == "schedule" else _JOB_DENIED
        is_own = self.is_own(user_id, denied)
        try:
            found = self.get(*parts)
        except Refused as error:
            if error.status == 404:
                _deny(denied)
            raise
        if not is_own and found["userId"] != user_id:
            _deny(denied)
        return found

    def only_own(self, user_id: str, denied: str) -> None:
        """Nothing is made, and no list is read, in somebody else's name."""
        if not self.is_own(user_id, denied):
            raise _Wrong(denied, "this needs the token of the user named by --user-id")


def _deny(code: str) -> NoReturn:
    thing = "schedule" if code == _SCHEDULE_DENIED else "job"
    raise _Wrong(code, f"this {thing} is not yours to see or steer, or it does not exist")


# The commands, each with what it prints as `data`.


def _submit(desk: _Desk, asked: argparse.Namespace) -> Any:
    try:
        json.loads(asked.payload, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise _Wrong("INVALID_PAYLOAD", f"--payload is not JSON: {error}") from None
    desk.only_own(asked.user_id, _JOB_DENIED)
    # The payload goes as it was typed: numbers keep their digits.
    rest = dumps({"taskType": asked.task_type, "idempotencyKey": asked.idempotency_key})
    wish = rest[:-1] + ',"payload":' + asked.payload + "}"
    return desk.post(value=wish.encode("utf-8", "backslashreplace"), repeat=Repeat.SAFE)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"JSON has no {name}")


def _status(desk: _Desk, asked: argparse.Namespace) -> Any:
    try:
        return desk.owned(asked.user_id, "job", asked.job_id)
    except (_Wrong, Refused) as error:
        if error.code == _JOB_DENIED:
            raise _Wrong("JOB_NOT_FOUND", "there is no such job of this user") from None
        raise


def _steered(desk: _Desk, asked: argparse.Namespace) -> str:
    """The job to steer. A worker may move jobs that it cannot read, so only an admin's token has
    to look whose it is."""
    if not desk.is_own(asked.user_id, _JOB_DENIED):
        desk.owned(asked.user_id, "job", asked.job_id)
    job_id: str = asked.job_id
    return job_id


def _cancel(desk: _Desk, asked: argparse.Namespace) -> Any:
    return desk.post(_steered(desk, asked), "cancel")


def _retry(desk: _Desk, asked: argparse.Namespace) -> Any:
    return desk.post(_steered(desk, asked), "retry")


def _transition(desk: _Desk, asked: argparse.Namespace) -> Any:
    return desk.post(_steered(desk, asked), "transition", value={"toStatus": asked.to_status})


def _types(desk: _Desk, _asked: argparse.Namespace) -> Any:
    return desk.get("task-types")


def _runtime(desk: _Desk, _asked: argparse.Namespace) -> Any:
    return desk.get("runtime")


def _templates(desk: _Desk, _asked: argparse.Namespace) -> Any:
    return desk.get("system-schedules", "templates")


def _templates_recover(desk: _Desk, _asked: argparse.Namespace) -> Any:
    return desk.post("system-schedules", "templates", "recover", repeat=Repeat.SAFE)


def _schedule_interval(desk: _Desk, asked: argparse.Namespace) -> Any:
    desk.only_own(asked.user_id, _SCHEDULE_DENIED)
    wish = {"taskType": asked.task_type, "everySeconds": asked.every_seconds}
    return desk.post("schedules", "interval", value=wish)


def _schedule_cron(desk: _Desk, asked: argparse.Namespace) -> Any:
    desk.only_own(asked.user_id, _SCHEDULE_DENIED)
    wish = {"taskType": asked.task_type, "cronExpr": asked.cron_expr}
    return desk.post("schedules", "cron", value=wish)


def _schedules(desk: _Desk, asked: argparse.Namespace) -> Any:
    desk.only_own(asked.user_id, _SCHEDULE_DENIED)
    items: List[Any] = []
    cursor: Optional[str] = None
    while True:
        call = Call("GET", path("jobs", "schedules", query={"cursor": cursor}, base=""))
        page, headers = desk.transport.call_with_headers(call)
        items += page["items"]
        cursor = headers.get("x-next-cursor")
        if cursor is None:
            return {**page, "items": items}


def _schedule_stop(desk: _Desk, asked: argparse.Namespace) -> Any:
    desk.owned(asked.user_id, "schedule", "schedules", asked.schedule_id)
    return desk.post("schedules", asked.schedule_id, "stop", repeat=Repeat.SAFE)


#: Commands whose answer has its own ``runtime`` beside what was asked for, and where that is.
_WITH_RUNTIME = {"templates": "items", "schedules": "items", "templates-recover": "summary"}


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="job_orchestration", description=__doc__)
    commands = parser.add_subparsers(dest="command", metavar="command")

    def add(
        name: str, run: Callable[[_Desk, argparse.Namespace], Any], text: str, *needs: str
    ) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(run=run)
        for need in needs:
            command.add_argument(f"--{need}", required=True, type=int if "seconds" in need else str)
        return command

    user, job, kind = "user-id", "job-id", "task-type"
    submit = add("submit", _submit, "submit a task", user, kind, "idempotency-key")
    submit.add_argument("--payload", default="{}", help="JSON; {} if left out")
    add("status", _status, "read a task", user, job)
    add("transition", _transition, "move a task by hand", user, job, "to-status")
    add("cancel", _cancel, "end a task", user, job)
    add("retry", _retry, "do a failed task again, as a new one", user, job)
    add("types", _types, "list task types")
    add("runtime", _runtime, "how the server is; for admins")
    add("templates", _templates, "list templates and their schedules; for admins")
    add("templates-recover", _templates_recover, "make missing schedules of templates; for admins")
    add("schedule-interval", _schedule_interval, "make tasks every so often", user, kind, "every-seconds")
    add("schedule-cron", _schedule_cron, "make tasks by a cron expression", user, kind, "cron-expr")
    add("schedules", _schedules, "list schedules", user)
    add("schedule-stop", _schedule_stop, "stop a schedule for good", user, "schedule-id")
    return parser


def answer(asked: argparse.Namespace) -> Document:
    """What a command prints."""
    try:
        desk = _Desk()
        data = asked.run(desk, asked)
        if asked.command == "runtime":
            return {"success": True, "data": data}
        inner = _WITH_RUNTIME.get(asked.command)
        if inner is not None:
            return {"success": True, "data": data[inner], "runtime": data["runtime"]}
        return {"success": True, "data": data, "runtime": desk.runtime()}
    except (_Wrong, Refused) as error:
        return _error(str(error.code), error.message)
    except Unreachable as error:
        return _error("SERVER_UNREACHABLE", str(error))
    except Error as error:
        return _error("INTERNAL_ERROR", str(error))
    except ValueError as error:
        return _error("INVALID_ARGUMENT", str(error))


def _error(code: str, message: str) -> Document:
    return {"success": False, "error": {"code": code, "message": message}}


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs one command; answers the exit code."""
    parser = _arguments()
    asked = parser.parse_args(arguments)
    if asked.command is None:
        parser.print_help(sys.stderr)
        return 1
    text = json.dumps(answer(asked), indent=2, ensure_ascii=False) + "\n"
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
