"""The page of a study of published data, in a real browser: it asks nobody, runs nothing, and fits."""

from __future__ import annotations

from made_up.toy_study import DATASET, REANALYSIS, analyse, write

import fidm_studies
from fidm_studies.page import tell, to_html


def test_a_study_page_fits_and_keeps_nobody_out(watched, axe, tmp_path):
    write(tmp_path / DATASET.folder)
    loaded = fidm_studies.load(DATASET, tmp_path)
    path = tmp_path / "toy.html"
    path.write_text(to_html(tell(REANALYSIS, analyse(loaded), loaded)), "utf-8")
    page = watched.page()
    page.goto(path.as_uri())
    assert axe(page) == []
    assert {url.split(":")[0] for url in watched.requests} <= {"file", "data"}
    assert page.evaluate("document.querySelector('figure img').naturalWidth") > 100
    for width in (360, 1366):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_function("width => innerWidth === width", arg=width)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
