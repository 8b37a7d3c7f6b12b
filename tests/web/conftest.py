"""A real browser: Debian's Chromium (or whatever Chromium there is), driven by Playwright."""

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

PATIENCE_MS = 30_000
"""How long a page may take to show something: far more than it needs, for machines that do much else."""

expect.set_options(timeout=PATIENCE_MS)

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")


def chromium() -> str:
    """Where the browser is; the tests that need one fail, and say what to do, where there is none."""
    found = os.environ.get("FIDM_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if not found:
        pytest.fail(
            "No Chromium is installed. Run: sh scripts/get-browser.sh (make test does).", pytrace=False
        )
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-dev-shm-usage"], headless=True
        )
        yield started
        started.close()


class Watched:
    """Contexts whose pages are watched: anything on the console that is an error is kept."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.expected: list[str] = []
        self._open: list[BrowserContext] = []

    def context(self, **options: Any) -> BrowserContext:
        made = self.browser.new_context(**{"viewport": {"width": 1366, "height": 768}, **options})
        made.set_default_timeout(PATIENCE_MS)
        made.on("page", self._watch)
        self._open.append(made)
        return made

    def page(self, **options: Any) -> Page:
        return self.context(**options).new_page()

    def _watch(self, page: Page) -> None:
        page.on("console", lambda said: said.type == "error" and self.errors.append(said.text))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def unexpected(self) -> list[str]:
        """The errors that no test said it expects."""
        return [text for text in self.errors if not any(part in text for part in self.expected)]

    def close(self) -> None:
        for context in self._open:
            context.close()


@pytest.fixture
def watched(browser: Browser) -> Iterator[Watched]:
    """Makes contexts and pages; the test fails if one of them wrote an error that is not in ``expected``."""
    found = Watched(browser)
    yield found
    found.close()
    assert found.unexpected() == []


@pytest.fixture
def page(watched: Watched) -> Page:
    return watched.page()


@pytest.fixture
def axe() -> Callable[[Page], list[str]]:
    """Runs axe on a page and gives what it complains about, in words."""

    def run(page: Page) -> list[str]:
        chosen = {"runOnly": {"type": "tag", "values": list(RULES)}, "resultTypes": ["violations"]}
        found = Axe().run(page, options=chosen)
        return [
            f"{item['id']}: {item['help']} ({', '.join(' '.join(map(str, node['target'])) for node in item['nodes'][:3])})"
            for item in found.response["violations"]
        ]

    return run
