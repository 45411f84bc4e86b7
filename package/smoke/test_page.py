"""The explorer, served and saved."""

import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

PSIDP = str(Path(sys.executable).with_name("psidp"))


def test_the_page_and_its_numbers_are_served():
    served = subprocess.Popen([PSIDP, "explore", "--port", "0", "--no-browser"], stdout=subprocess.PIPE, text=True)
    try:
        address = re.search(r"http://\S+/", served.stdout.readline())[0]
        web = build_opener(ProxyHandler({}))
        assert b"<html" in web.open(address).read().lower()
        schema = json.loads(web.open(f"{address}api/openapi.json").read())
        assert schema["info"]["title"]
        assert len(schema["paths"]) >= 5
    finally:
        served.terminate()
        served.wait()
        served.stdout.close()


def test_the_page_is_one_file(tmp_path):
    subprocess.run([PSIDP, "explore", "--save", "page.html"], check=True, cwd=tmp_path, capture_output=True)
    assert (tmp_path / "page.html").stat().st_size > 50_000
