"""Make the pictures of the report and the review page in ``docs/images``, from simulated people.

    .venv/bin/python scripts/screenshots.py

It needs a Chromium (``scripts/get-browser.sh`` gets one). The study it makes is gone afterwards.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

IMAGES = Path(__file__).parent.parent / "docs" / "images"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PEOPLE, SEED = 30, 3
MOST_BYTES = 150_000
COLOURS = (256, 128, 64, 32)


def main() -> int:
    """Make all pictures."""
    browser_path = os.environ.get("FIDM_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if not browser_path:
        print("There is no Chromium. Run: sh scripts/get-browser.sh", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="fidm-screenshots-") as folder, sync_playwright() as playwright:
        study = Path(folder) / "shop"
        simulate = ("simulate", study, "--people", PEOPLE, "--language", "en", "--formats", "csv")
        fidm(*simulate, "--seed", SEED)
        fidm("ground", study)
        fidm("fit", study)
        fidm("report", study, "--no-classify")
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        picture_report(browser, study / "report.html")
        picture_review(browser, study)
        browser.close()
    return 0


def fidm(*arguments: object) -> None:
    """Run a verb; what it prints is no news here."""
    command = [sys.executable, "-m", "fidm", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603


def picture_report(browser: Browser, path: Path) -> None:
    """One person of the report, the most unexpected step pinned."""
    page = new_page(browser, width=1180, height=1010)
    page.goto(path.as_uri())
    page.get_by_label("Sort by").select_option("mean_unexpectedness")
    page.get_by_label("Order").select_option("down")
    person = page.locator("details.person").first
    person.locator("summary").click()
    bars = person.locator("g.bar[data-step]:not(.uncounted)")
    heights = bars.locator(".body").evaluate_all("all => all.map(one => Number(one.getAttribute('height')))")
    bars.nth(max(range(len(heights)), key=heights.__getitem__)).dispatch_event("click")
    person.locator("figure").first.evaluate(
        "(one, bar) => scrollTo(0, scrollY + one.getBoundingClientRect().top - bar.offsetHeight - 8)",
        person.locator(".walker").element_handle(),
    )
    save(page, "report.png")


def picture_review(browser: Browser, study: Path) -> None:
    """The review page: a doubtful segment as it is first shown, and the same one being edited."""
    with reviewing(study) as address:
        page = new_page(browser, width=1366, height=800)
        page.goto(address)
        page.locator("#rows button.row").first.wait_for()
        page.locator("#turns .own").first.wait_for()
        page.locator("#on").click(click_count=3)
        save(page, "review.png")
        page.keyboard.press("Escape")
        page.locator("#edit").click()
        page.locator("#legal button").first.wait_for()
        page.locator("#map rect.shelf").first.wait_for()
        page.locator("#legal button").first.click()
        page.locator("#changes p, #changes li").first.wait_for()
        page.wait_for_timeout(400)
        save(page, "review-edit.png")


@contextmanager
def reviewing(study: Path) -> Iterator[str]:
    """Serve the review page; gives its address, and stops the server afterwards."""
    command = [sys.executable, "-m", "fidm", "review", str(study), "--reviewer", "Ann", "--no-open"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603
    assert server.stdout is not None  # noqa: S101
    try:
        for line in server.stdout:
            if line.startswith("Open "):
                yield line.split()[1]
                break
        else:
            raise RuntimeError("The review page did not start.")
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=60)


def new_page(browser: Browser, *, width: int, height: int) -> Page:
    """A page of this size, without animations."""
    context = browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce")
    context.set_default_timeout(20_000)
    return context.new_page()


def save(page: Page, name: str) -> None:
    """Write what the page shows, with as many colours as the size allows."""
    shot = Image.open(io.BytesIO(page.screenshot(animations="disabled"))).convert("RGB")
    for colours in COLOURS:
        packed = io.BytesIO()
        shot.quantize(colours, dither=Image.Dither.NONE).save(packed, format="PNG", optimize=True)
        if packed.tell() < MOST_BYTES:
            break
    else:
        raise RuntimeError(f"{name} is too large: {packed.tell():,} bytes.")
    (IMAGES / name).write_bytes(packed.getvalue())
    print(f"{IMAGES / name}: {packed.tell():,} bytes, {colours} colours")


if __name__ == "__main__":
    sys.exit(main())
