"""``fidm check TASK``: is this task sane, and what to change if it is not."""

from __future__ import annotations

from fidm.cli.shared import (
    print_json,
)
from fidm.present.terminal import page, progress_bar


def check(
    task: str,
    *,
    json: bool = False,
    vary: bool = True,
) -> int:
    """Say whether a task can be used, with numbers and in words.

    Exit code 0: usable. 1: not usable. 2: the task could not be read.

    Parameters
    ----------
    task
        The name of a built-in task, or the path of a task file.
    json
        Print everything as JSON instead of a page.
    vary
        Also solve the task for other temperatures and move costs.
    """
    from fidm.present.task import show_check
    from fidm.tasks.check import check_task
    from fidm.tasks.compile import load_task

    model = load_task(task)
    with progress_bar() as bars:
        result = check_task(model, vary=vary, on_progress=lambda done, of: bars.step("solving", done, of))
    if json:
        print_json(result.to_dict())
    else:
        show_check(result, page())
    return 0 if result.usable else 1
