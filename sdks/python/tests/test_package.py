"""What is promised of the package itself: its types tell what it has, and it needs nothing."""

import ast
import importlib.metadata
import inspect
import unittest
from pathlib import Path

import mainspring
from mainspring import AsyncClient, Client, Failure, Release, Worker
from mainspring._methods import Methods, wish
from mainspring._report import complete, fail, release


def stub():
    text = (Path(mainspring.__file__).parent / "client.pyi").read_text()
    return {node.name: node for node in ast.parse(text).body if hasattr(node, "name")}


def names(function):
    given = function.args
    return [arg.arg for arg in [*given.posonlyargs, *given.args, *given.kwonlyargs]]


class Package(unittest.TestCase):
    def test_the_types_are_those_of_the_methods(self):
        told = stub()
        options = [name for name in inspect.signature(wish).parameters]
        self.assertEqual(names(told["wish"]), options)
        for name, kind in (("Client", ast.FunctionDef), ("AsyncClient", ast.AsyncFunctionDef)):
            methods = {it.name: it for it in told[name].body if hasattr(it, "args")}
            own = {name for name in vars(Methods) if not name.startswith("_")}
            self.assertEqual(own - set(methods), set())
            for method in own:
                parameters = [p for p in inspect.signature(getattr(Methods, method)).parameters]
                if method == "submit":
                    parameters = ["self", *options[:2], "wait_ms", *options[2:]]
                self.assertEqual(names(methods[method]), parameters, method)
                self.assertIsInstance(methods[method], kind, method)

    def test_it_needs_nothing_and_is_typed(self):
        self.assertEqual(importlib.metadata.requires("mainspring") or [], [])
        self.assertEqual(importlib.metadata.version("mainspring"), mainspring.__version__)
        self.assertTrue((Path(mainspring.__file__).parent / "py.typed").is_file())

    def test_addresses_and_tokens_that_cannot_be_used_are_refused(self):
        for url in ("127.0.0.1:7070", "ftp://x", "http://"):
            with self.assertRaises(ValueError):
                Client(url)
        with self.assertRaises(ValueError):
            AsyncClient("http://127.0.0.1", "a\r\nX-Evil: 1")
        self.assertNotIn("secret", repr(Client("http://127.0.0.1", "secret").settings))

    def test_bounds_hold_whatever_is_asked_for(self):
        worker = Worker(Client("http://127.0.0.1:1"), concurrency=0, lease=0, wait=1e9)
        bounds = (worker.concurrency, worker.lease, worker.wait, worker.first_lease)
        self.assertEqual(bounds, (1, 0.1, 60.0, 0.1))

    def test_reports_are_cut_to_what_is_kept_and_stay_json(self):
        import json

        said = json.loads(fail("j", "l", Failure("C" * 1000, "ü" * 9000, retry_delay=1.5)).text)
        self.assertEqual((len(said["error_code"]), len(said["message"].encode())), (100, 4096))
        self.assertEqual(said["retry_delay_ms"], 1500)
        said = json.loads(release("j", 'l"', Release("\ud800\n").reason).text)
        self.assertEqual((said["lease_token"], said["reason"]), ('l"', "?\n"))
        self.assertEqual(json.loads(complete("j", "l", '{"a":[1]}').text)["result"], {"a": [1]})


if __name__ == "__main__":
    unittest.main()
