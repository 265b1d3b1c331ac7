"""The pytest plugin: a test declares what its program may take, and latlab explain holds it to that.

    def test_the_report_reads_from_memory(latlab_gate):
        latlab_gate(["./report", "data.csv"], wait_disk="5 %", page_faults="100 per row", requests=1000)

pytest imports this file wherever latlab is installed: it imports nothing else until a test uses the fixture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from latlab.explain.model import Explained


def pytest_configure(config: pytest.Config) -> None:
    """Makes the marker known."""
    config.addinivalue_line(
        "markers",
        'latlab(**budgets): what a program given to latlab_gate may take: wait_disk="5 %", wall="2 s",'
        ' page_faults="100 per request"; requests=, runs=, timeout=, undecided="skip", "fail" or "pass".',
    )


@pytest.fixture
def latlab_gate(request: pytest.FixtureRequest) -> Callable[..., Explained]:
    """Runs a program, and fails the test where it takes more than its budgets.

    `latlab_gate(program, **budgets)` returns the ledger of the run. Budgets are in `latlab.explain.budgets`;
    `@pytest.mark.latlab(**budgets)` has those of each program of a test, a class or a module. `requests` is
    how many a run serves, for limits `per request`; so many `runs` are combined; `timeout` is how long all of
    them may take. What is not known here, or not well enough, skips the test, unless `undecided` is `"fail"`
    or `"pass"`.
    """
    marked: dict[str, object] = {}
    for mark in reversed(list(request.node.iter_markers("latlab"))):
        if mark.args:
            pytest.fail(f'@pytest.mark.latlab: {mark.args[0]!r} has no name: write wall="2 s"', pytrace=False)
        marked |= mark.kwargs

    def gate(program: list[str], **given: object) -> Explained:
        __tracebackhide__ = True
        import sys  # noqa: PLC0415 - see the module

        if sys.platform != "linux":
            pytest.skip("latlab explains programs on Linux only")
        from latlab.errors import UserError  # noqa: PLC0415 - see the module
        from latlab.explain.gated import gated  # noqa: PLC0415 - see the module
        from latlab.explain.program import ProgramError  # noqa: PLC0415 - see the module

        try:
            found = gated(program, marked | given)
        except (ProgramError, UserError) as error:
            reason = str(error)
        else:
            reason = found.failure
        # Outside of the handler, or pytest would show the whole way down to where it was raised.
        if reason:
            pytest.fail(f"latlab_gate: {reason}")
        for each in found.outcomes:
            request.node.user_properties.append((f"latlab {each.budget.name}", each.why))
        if found.doubt:
            pytest.skip(found.doubt)
        return found.explained

    return gate
