#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""page.py - `rondo explain --html` in a headless browser, by keyboard, mouse and touch, at two sizes.

    page.py RONDO [--shots FOLDER] [--axe FILE]
    page.py RONDO --write     makes the pictures of docs/pictures anew
    page.py RONDO --check     needs no browser: are those pictures of the page as it is?

Beside each of those pictures is the hash of the page that it was taken of. With axe.min.js of axe-core, which PyPI has
in axe-core-python, pages are also held against the rules for accessibility. Chromium and its driver (Debian: chromium,
chromium-driver) are spoken with by WebDriver, over HTTP to this machine only. Where they are not installed, it says so
and ends with 77, which tests take for skipped.
"""
import argparse
import base64
import hashlib
import importlib.util
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

SIZES = {'desktop': (1280, 900, False), 'phone': (390, 844, True)}
PICTURES = pathlib.Path(__file__).resolve().parents[2] / 'docs' / 'pictures'
KEPT = {'desktop-light': 'page-desktop.png', 'phone-dark': 'page-phone.png'} # of the ring
RING = ('all_reduce', '-n', '8', '--algo', 'ring')
PATIENCE = 120  # seconds, on a busy machine


class Browser:
    """A session of WebDriver."""

    def __init__(self, driver, chromium, folder, width, height, phone, features=()):
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            port = free.getsockname()[1]
        self.root = f'http://127.0.0.1:{port}'
        self.driver = subprocess.Popen([driver, f'--port={port}', '--allowed-ips=127.0.0.1'], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
        options = {'binary': chromium, 'args': ['--headless=new', '--no-sandbox', '--disable-gpu',
                                                '--disable-dev-shm-usage', f'--user-data-dir={folder}',
                                                f'--window-size={width},{height}', *features]}
        if phone:
            options['mobileEmulation'] = {'deviceMetrics': {'width': width, 'height': height, 'pixelRatio': 2.0,
                                                            'touch': True}}
        wanted = {'browserName': 'chrome', 'goog:chromeOptions': options, 'goog:loggingPrefs': {'browser': 'ALL'}}
        self.wait_for_driver()
        self.session = ''
        self.session = '/session/' + self.ask('POST', '/session',
                                              {'capabilities': {'alwaysMatch': wanted}})['sessionId']

    def wait_for_driver(self):
        for _ in range(PATIENCE * 5):
            try:
                urllib.request.urlopen(self.root + '/status', timeout=PATIENCE).read()
                return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.2)
        sys.exit('page.py: the driver of Chromium does not answer')

    def ask(self, method, path, body=None):
        whole = path if path == '/session' else self.session + path
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.root + whole, data, {'Content-Type': 'application/json'}, method=method)
        try:
            return json.load(urllib.request.urlopen(request, timeout=PATIENCE))['value']
        except urllib.error.HTTPError as error:
            sys.exit(f'page.py: {path}: {error.read().decode()[:500]}')

    def run(self, script, *arguments):
        return self.ask('POST', '/execute/sync', {'script': script, 'args': list(arguments)})

    def run_async(self, script):
        """The script calls its last argument with what it finds."""
        return self.ask('POST', '/execute/async', {'script': script, 'args': []})

    def press(self, *keys):
        actions = [{'type': kind, 'value': key} for key in keys for kind in ('keyDown', 'keyUp')]
        self.ask('POST', '/actions', {'actions': [{'type': 'key', 'id': 'keys', 'actions': actions}]})

    def click(self, selector, kind='mouse', part=0.5):
        """With the mouse or a finger, at this part of the element's width."""
        x, y = self.run('const b = document.querySelector(arguments[0]).getBoundingClientRect();'
                        'return [b.left + b.width * arguments[1], b.top + b.height / 2]', selector, part)
        self.ask('POST', '/actions', {'actions': [{'type': 'pointer', 'id': kind, 'parameters': {'pointerType': kind},
                                                   'actions': [{'type': 'pointerMove', 'x': int(x), 'y': int(y)},
                                                               {'type': 'pointerDown', 'button': 0},
                                                               {'type': 'pointerUp', 'button': 0}]}]})

    def picture(self, file):
        file.write_bytes(base64.b64decode(self.ask('GET', '/screenshot')))

    def errors(self):
        return [entry['message'] for entry in self.ask('POST', '/se/log', {'type': 'browser'})
                if entry['level'] == 'SEVERE']

    def close(self):
        try:
            self.ask('DELETE', '')
        finally:
            self.driver.terminate()
            self.driver.wait()


KEYS = {'right': '\ue014', 'left': '\ue012', 'home': '\ue011', 'end': '\ue010', 'tab': '\ue004', 'space': ' '}
READY = '''return plans.map(plan => plan.owns.map((_, r) => [+plan.canvas.dataset.ready.split(" ")[r],
    plan.gets[r].length]))'''


PLACES = 'return plans.map(plan => plan.canvas.getBoundingClientRect().top + scrollY)'


def expect(is_so, sentence):
    if not is_so:
        sys.exit(f'page.py: {sentence}')


def complete(browser):
    return all(has == wanted for plan in browser.run(READY) for has, wanted in plan)


def by_keyboard(browser):
    """From the start to the end, step by step, and back."""
    steps = browser.run('return moments.length - 1')
    browser.press(KEYS['home'])
    expect(not complete(browser), 'all is there at the start')
    label = 'return plans.map(plan => plan.canvas.getAttribute("aria-label"))'
    expect(all('complete: 0' not in one for one in browser.run(label)), 'a screen reader hears of sums that have begun')
    expect(' 12000 elements ' in browser.run('return at("about").textContent'), 'the page says how long the vector is')
    stood = browser.run(PLACES)
    for number in range(1, steps + 1):
        browser.press(KEYS['right'])
        expect(browser.run('return step') == number, f'a key goes to step {number}')
        stands = browser.run(PLACES)
        expect(stands == stood, f'cells jump in step {number}, from {stood} to {stands}')
    expect(complete(browser), 'at the end some cell of some rank is not complete')
    expect(f'Step {steps} of {steps}: ' in browser.run('return document.querySelector("#live").textContent'),
           'a screen reader hears of the last step')
    browser.press(KEYS['left'])
    expect(browser.run('return step') == steps - 1, 'a key goes back')
    browser.press(KEYS['end'], KEYS['home'], KEYS['end'])
    expect(complete(browser), 'the end key goes to the end')


def goes_forward(browser):
    """Chunks move towards the rank that they go to, however close ranks stand."""
    back = browser.run("""
        return plans.flatMap(plan => plan.messages.filter(m => m[3] < m[4]).slice(0, 100).filter(message => {
            const all = plan.messages, [a, b] = [plan.places[message[0]], plan.places[message[1]]];
            plan.messages = [message];
            const [early, late] = [.1, .9].map(part => {
                now = message[3] + part * (message[4] - message[3]);
                drawMoving(plan);
                const chunk = plan.moving.firstChild;
                return chunk.getAttribute("x") * (b.x - a.x) + chunk.getAttribute("y") * (b.y - a.y); });
            plan.messages = all;
            return !(late > early);
        }).map(message => message.slice(0, 2)))""")
    browser.run('go(0)')
    expect(not back, f'chunks move backwards between {back}')


def by_pointer(browser, kind):
    browser.click('#first', kind)
    expect(browser.run('return step') == 0, f'{kind}: the first button goes to the start')
    browser.click('#next', kind)
    expect(browser.run('return step') == 1, f'{kind}: a button steps')
    browser.click('#back', kind)
    expect(browser.run('return step') == 0, f'{kind}: a button steps back')
    if kind == 'mouse':
        browser.click('#scrub', kind, 0.5)
        part = browser.run('return now / end')
        expect(0.4 < part < 0.6, f'the middle of the slider is the middle of the time, not {part}')
    browser.click('#last', kind)
    expect(complete(browser), f'{kind}: the last button goes to the end')


def by_playing(browser):
    """It plays to the end by itself, however slow the machine is, and can be stopped."""
    browser.press(KEYS['home'])
    browser.run('document.activeElement.blur()')
    browser.press(KEYS['space'])
    expect(browser.run('return playing'), 'the space key plays')
    limit = time.monotonic() + PATIENCE
    while browser.run('return playing') and time.monotonic() < limit:
        time.sleep(0.5)
    expect(complete(browser), 'playing comes to the end')
    browser.press(KEYS['space'], KEYS['space'])
    expect(not browser.run('return playing'), 'the space key pauses')


def in_calm(browser, page):
    """Where nothing shall move, each step shows what came with it, and playing leaves none out."""
    browser.ask('POST', '/url', {'url': page.as_uri()})
    browser.press(KEYS['right'], KEYS['right'], KEYS['right'])
    shown = browser.run('return document.querySelectorAll(".move").length')
    expect(shown > 0 and browser.run('return calm.matches'), f'{shown} chunks of step 3 are shown')
    browser.run("""seek((moments[2] + moments[3]) / 2);
        const usual = go; window.gone = []; go = number => { gone.push(number); usual(number); }; play(true)""")
    limit = time.monotonic() + PATIENCE
    while browser.run('return gone.length') < 2 and time.monotonic() < limit:
        time.sleep(0.5)
    browser.run('play(false)')
    gone = browser.run('return gone')
    expect(gone[:2] == [3, 4], f'from within step 3 it plays {gone}')


def check_names(browser):
    """What a reader of the screen needs: names, and letters that can be told from what is behind them."""
    nameless = browser.run('''return [...document.querySelectorAll("button, input, select, svg, canvas, section")]
        .filter(e => !(e.getAttribute("aria-label") || e.textContent.trim())).map(e => e.outerHTML.slice(0, 80))''')
    expect(not nameless, f'without a name: {nameless}')
    small = browser.run('''return [...document.querySelectorAll("button")].filter(e => e.offsetHeight < 44).length''')
    expect(small == 0, 'buttons are too small for a finger')
    pale = browser.run('''
        const light = c => { const v = c.map(x => (x /= 255) <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4);
                             return .2126 * v[0] + .7152 * v[1] + .0722 * v[2]; };
        const rgb = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
        const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
                              if (c !== "rgba(0, 0, 0, 0)") return c; } return "rgb(255, 255, 255)"; };
        return [...document.querySelectorAll("h1, h2, p, li, dt, dd, button, label")].filter(e => {
            const a = light(rgb(getComputedStyle(e).color)), b = light(rgb(behind(e)));
            return (Math.max(a, b) + .05) / (Math.min(a, b) + .05) < 4.5; }).map(e => e.outerHTML.slice(0, 80))''')
    expect(not pale, f'too pale to read: {pale}')
    tiny = browser.run("""return [...document.querySelectorAll("p, li, dd, button, label, select")]
        .filter(e => parseFloat(getComputedStyle(e).fontSize) < 14).map(e => e.outerHTML.slice(0, 80))""")
    expect(not tiny, f'too small to read: {tiny}')
    wide = browser.run('return document.documentElement.scrollWidth - innerWidth')
    expect(wide <= 0, f'the page is {wide} pixels wider than the window')


def by_breaking(browser):
    """Breaking a step shows what the verifier says, and the space key opens that part instead of playing."""
    browser.run('document.querySelector("details.break summary").focus()')
    browser.press(KEYS['space'])
    expect(browser.run('return document.querySelector("details.break").open && !playing'), 'the space key opens a part')
    said = set()
    for number in range(browser.run('return plans[0].breaks.length')):
        said.add(browser.run('const part = document.querySelector("details.break");'
                             'const choice = part.querySelector("select"); choice.value = arguments[0];'
                             'choice.onchange(); return part.querySelector("div").innerText', number))
    expect(all(' rank ' in text or 'deadlock' in text for text in said), 'a broken step is refused in a sentence')
    expect(len(said) > 5, 'steps break in different ways')
    browser.run('document.querySelector("details.break").open = false')


def axe_of(option):
    """The text of axe.min.js; None where there is none."""
    package = importlib.util.find_spec('axe_core_python')
    file = option or (package and pathlib.Path(package.origin).parent / 'axe.min.js')
    return file.read_text(encoding='utf-8') if file else None


def by_axe(browser, axe, name):
    browser.run('document.querySelectorAll("details").forEach(part => part.open = true)')
    found = browser.run_async(axe + """; const done = arguments[arguments.length - 1];
        axe.run().then(result => done({rules: result.passes.length, wrong: result.violations.map(
            one => one.impact + ": " + one.id + ": " + one.nodes[0].html.slice(0, 120))}),
            error => done({rules: 0, wrong: "" + error}))""")
    expect(not found['wrong'], f'{name}: axe-core finds {found["wrong"]}')
    expect(found['rules'] > 10, f'{name}: axe-core has tried {found["rules"]} rules only')
    browser.run('document.querySelectorAll("details").forEach(part => part.open = false)')


def make(rondo, folder, name, *arguments):
    file = folder / f'{name}.html'
    subprocess.run([rondo, 'explain', *arguments, '--html', str(file)], check=True)
    text = file.read_text()
    expect('http://' not in text.replace('http://www.w3.org/2000/svg', '') and 'https://' not in text,
           f'{name} asks the network')
    return file


def hash_file(picture):
    return PICTURES / (picture + '.sha256')


def check_pictures(page):
    digest = hashlib.sha256(page.read_bytes()).hexdigest()
    for picture in KEPT.values():
        kept = hash_file(picture).read_text().split()[0]
        expect((PICTURES / picture).stat().st_size > 10_000, f'docs/pictures/{picture} is no picture')
        expect(kept == digest, f'docs/pictures/{picture} is of another page: run tests/cli/page.py RONDO --write')
    print('the pictures are of the page as it is')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('rondo')
    parser.add_argument('--write', action='store_true', help='make the pictures of docs/pictures anew')
    parser.add_argument('--check', action='store_true', help='are they of the page as it is?')
    parser.add_argument('--shots', type=pathlib.Path, help='keep pictures in this folder')
    parser.add_argument('--axe', type=pathlib.Path, help='axe.min.js of axe-core')
    options = parser.parse_args()
    axe = axe_of(options.axe)
    if options.check:
        with tempfile.TemporaryDirectory() as name:
            check_pictures(make(options.rondo, pathlib.Path(name), 'ring', *RING))
        return
    driver = shutil.which('chromedriver')
    chromium = next(filter(None, map(shutil.which, ('chromium', 'chromium-browser', 'google-chrome'))), None)
    if not driver or not chromium:
        print('skipped: chromium and chromium-driver are not installed (./dev deps browser)')
        sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        ring = make(options.rondo, folder, 'ring', *RING)
        expect(ring.stat().st_size < 50_000, f'the page of 8 ranks has {ring.stat().st_size} bytes')
        pages = [ring,
                 make(options.rondo, folder, 'compare', 'all_reduce', '-n', '4', '--compare', 'ring,tree,direct'),
                 make(options.rondo, folder, 'gather', 'all_gather', '-n', '5'),
                 make(options.rondo, folder, 'hosts', 'all_reduce', '-n', '8', '--algo', 'hierarchy', '-g', '2x4'),
                 make(options.rondo, folder, 'close', 'all_reduce', '-n', '16', '--algo', 'ring'),
                 make(options.rondo, folder, 'many', 'all_reduce', '-n', '64', '--algo', 'halving')]
        for size, (width, height, phone) in SIZES.items():
            for look in ('light', 'dark'):
                browser = Browser(driver, chromium, folder / f'{size}-{look}', width, height, phone,
                                  ['--force-dark-mode', '--blink-settings=preferredColorScheme=0'] if look == 'dark'
                                  else [])
                try:
                    look_at(browser, pages if look == 'light' else pages[:2], phone, f'{size}-{look}', options, axe)
                finally:
                    browser.close()
        browser = Browser(driver, chromium, folder / 'calm', 1280, 900, False, ['--force-prefers-reduced-motion'])
        try:
            in_calm(browser, ring)
        finally:
            browser.close()
    print('the pages are right' + ('' if axe else '; axe-core is not installed, its rules were not tried'))


def keep(browser, page, name, options):
    """The picture, where it was asked for."""
    if options.shots:
        options.shots.mkdir(parents=True, exist_ok=True)
        browser.picture(options.shots / f'{page.stem}-{name}.png')
    if options.write and page.stem == 'ring' and name in KEPT:
        browser.picture(PICTURES / KEPT[name])
        digest = hashlib.sha256(page.read_bytes()).hexdigest()
        hash_file(KEPT[name]).write_text(f'{digest}  rondo explain {" ".join(RING)} --html\n')


def look_at(browser, pages, phone, size, options, axe):
    for page in pages:
        browser.ask('POST', '/url', {'url': page.as_uri()})
        check_names(browser)
        by_keyboard(browser)
        goes_forward(browser)
        by_pointer(browser, 'touch' if phone else 'mouse')
        if page.stem == 'ring':
            by_breaking(browser)
        if page.stem == 'ring' and size == 'desktop-light':
            by_playing(browser)
        if axe:
            by_axe(browser, axe, page.stem)
        browser.press(KEYS['home'])
        browser.run('seek(end * 0.45)')
        browser.run('document.activeElement.blur()')
        browser.run(f'scrollTo(0, {"plans[0].svg.getBoundingClientRect().top + scrollY - 125" if phone else "0"})')
        keep(browser, page, size, options)
        errors = browser.errors()
        expect(not errors, f'{page.stem}: {errors}')


if __name__ == '__main__':
    main()
