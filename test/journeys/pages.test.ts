// The pages in a real browser, of a real service with jobs that succeeded and failed: light and dark, phone and desktop,
// with the keyboard alone and without a script. The content security policy refuses nothing, and nothing is loaded from
// other hosts.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { chromiumPath, requirement } from '#test/support/chain/requirements.ts';
import { PALETTE } from '#test/support/given/palette.ts';
import { type OpenPage, resize, startBrowser, type TestBrowser } from '#test/support/process/browser.ts';
import { type Service, waitFor } from '#test/support/process/service.ts';
import { SERVED_CHECKS } from '#test/support/world/service-receipts.ts';
import { type Executed, execute, makeWorld, type World } from '#test/support/world/service-world.ts';

const needs = requirement('Chromium', chromiumPath() !== null, 'no chromium on PATH');

let world: World;
let service: Service;
let browser: TestBrowser;
let succeeded: Executed;
let failed: Executed;
describe('pages', needs, () => {
  before(async () => {
    world = await makeWorld();
    service = await world.start();
    world.target.answer(({ path }) => ({ status: path === '/fails' ? 500 : 200, body: 'fine' }));
    succeeded = (await execute(service, { url: world.target.url('/hook') })).body;
    failed = (await execute(service, { url: world.target.url('/fails') })).body;
    browser = await startBrowser();
  });
  after(async () => {
    await browser.close();
    await world.end();
  });

  const unknown = `/proof/job_${'0'.repeat(26)}`;
  const paths = () => [
    '/',
    '/docs',
    '/status',
    '/verify',
    `/proof/${succeeded.job.id}`,
    `/proof/${failed.receipt.id}`,
    unknown,
  ];

  /** Opens each page in one window. */
  async function onEachPage(
    window: Parameters<TestBrowser['open']>[1],
    look: (open: OpenPage, path: string) => Promise<void>,
  ): Promise<void> {
    const open = await browser.open('about:blank', window);
    for (const path of paths()) {
      for (const heard of Object.values(open.heard)) heard.length = 0;
      const response = await open.page.goto(`${service.url}${path}`);
      assert.equal(response?.status(), path === unknown ? 404 : 200, path);
      await look(open, path);
    }
    await open.page.context().close();
  }

  const DESKTOP = { width: 1440, height: 900 };
  const PHONE = { width: 360, height: 740 };

  const hexOf = (rgb: string) =>
    `#${(rgb.match(/\d+/g) ?? []).map((part) => Number(part).toString(16).padStart(2, '0')).join('')}`;

  test('pages, light and dark: nothing is cut off, complained of or loaded from elsewhere', async () => {
    await onEachPage({ viewport: DESKTOP }, async ({ page, heard }, path) => {
      await page.evaluate('document.querySelectorAll("details").forEach((one) => { one.open = true; })');
      for (const viewport of [PHONE, DESKTOP]) {
        await resize(page, viewport);
        const width = await page.evaluate<number>('document.documentElement.scrollWidth');
        assert.ok(width <= viewport.width, `${path} is ${width} wide, not ${viewport.width}`);
      }
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        const ground = await page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
        assert.equal(hexOf(ground), PALETTE[colorScheme].paper, path);
      }
      // The browser itself reports the status 404 of a page.
      const said = heard.said.filter((text) => path !== unknown || !text.includes('status of 404'));
      assert.deepEqual(said, [], path);
      assert.ok(heard.requests.length > 0);
      const elsewhere = heard.requests.filter((address) => new URL(address).origin !== service.url);
      assert.deepEqual(elsewhere, [], path);
    });
  });

  test('pages without a script have all their content, under headings in order', async () => {
    const words: Readonly<Record<string, readonly string[]>> = {
      '/': [succeeded.job.id, failed.job.id, 'answered 500', 'curl', 'demo mode'],
      '/docs': ['/api/execute/webhook', 'idempotencyKey', '/mcp'],
      '/status': [failed.job.id],
      [`/proof/${succeeded.job.id}`]: [succeeded.job.id, succeeded.receipt.id, 'verified', ...SERVED_CHECKS],
      [`/proof/${failed.receipt.id}`]: [failed.job.id, 'The call failed', ...SERVED_CHECKS],
      '/verify': ['relay verify receipt.json'],
      [unknown]: ['No proof here'],
    };
    await onEachPage({ javaScriptEnabled: false }, async ({ page }, path) => {
      const text = (await page.locator('main').textContent()) ?? '';
      for (const word of words[path] ?? ['words of this page']) {
        assert.ok(text.includes(word), `${path}: ${word}`);
      }
      assert.equal(await page.locator('script:not([src^="/verify.js?"]), iframe, img').count(), 0);
      const levels = await page.evaluate<number[]>(
        '[...document.querySelectorAll("h1,h2,h3,h4,h5,h6")].map(({ tagName }) => Number(tagName[1]))',
      );
      const isWrong = (level: number, i: number) =>
        i === 0 ? level !== 1 : level === 1 || level > (levels[i - 1] ?? 0) + 1;
      assert.ok(levels.length > 0, path);
      assert.deepEqual(levels.filter(isWrong), [], path);
    });
  });

  test('every link on the pages has a target, and every fragment an element', async () => {
    const texts = new Map<string, string>();
    const textOf = async (address: string) => {
      const response = await fetch(address);
      assert.equal(response.status, address.endsWith(unknown) ? 404 : 200, address);
      return response.text();
    };
    const links = new Set<string>();
    for (const path of paths()) {
      const here = `${service.url}${path}`;
      texts.set(here, await textOf(here));
      for (const [, href = ''] of texts.get(here)?.matchAll(/ href="([^"]+)"/g) ?? []) {
        links.add(new URL(href, here).href);
      }
    }
    assert.ok(links.size > 50, `${links.size}`);
    for (const link of links) {
      const [address = '', anchor] = link.split('#');
      assert.equal(new URL(link).origin, service.url, link);
      if (!texts.has(address)) texts.set(address, await textOf(address));
      if (anchor !== undefined) assert.ok(texts.get(address)?.includes(` id="${anchor}"`), link);
    }
  });

  /** Everything that the Tab key must reach; of a radio group, the checked one. */
  const STOPS = `[...document.querySelectorAll(
  'a[href], summary, [tabindex="0"], textarea, button, input[type=file], input[type=search], input:checked',
)].filter((one) => one.checkVisibility())`;

  /** The focused element: its index among the page's tab stops (-1: none), and whether the focus is visible. */
  const FOCUSED = `(() => {
  const at = document.activeElement;
  const { top, bottom, width } = at.getBoundingClientRect();
  const { outlineStyle, outlineWidth } = getComputedStyle(at);
  return {
    stop: ${STOPS}.indexOf(at),
    seen: outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2 && width > 0 && bottom > 0 && top < innerHeight,
    text: at.outerHTML.slice(0, 120),
  };
})()`;
  type Focused = { readonly stop: number; readonly seen: boolean; readonly text: string };

  test('the Tab key reaches the link past the navigation first, then everything, and shows where it is', async () => {
    await onEachPage({}, async ({ page }, path) => {
      // The page's own script removes it, with links of its own.
      await waitFor('the script', () =>
        page.evaluate<boolean>("!document.body.textContent.includes('Without a script')"),
      );
      const stops = await page.evaluate<number>(`${STOPS}.length`);
      const reached = new Set<number>();
      for (let pressed = 0; pressed < stops; pressed++) {
        await page.keyboard.press('Tab');
        const { stop, seen, text } = await page.evaluate<Focused>(FOCUSED);
        assert.ok(seen, `${path}: the focus is not seen: ${text}`);
        reached.add(stop);
        if (pressed === 0) assert.match(text, /class="skip"/);
      }
      assert.ok(!reached.has(-1) && reached.size === stops, `${path}: ${reached.size} of ${stops}`);
    });
    const { page } = await browser.open(service.url);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    assert.equal(await page.evaluate('document.activeElement.id'), 'main');
  });

  test('the docs page folds its operations, and its filter shows those that match', async () => {
    const { page } = await browser.open(`${service.url}/docs`, { viewport: PHONE });
    const height = await page.evaluate<number>('document.documentElement.scrollHeight');
    assert.ok(height < 12_000, `${height} px`);
    const shown = () => page.locator('.operation:visible h3').allTextContents();
    const all = (await shown()).length;
    await page.getByRole('searchbox', { name: 'Filter' }).fill('verify receipt');
    const found = await shown();
    assert.ok(found.includes('Verify a receipt') && found.length < all, found.join());
    assert.equal(await page.locator('#filter-state').textContent(), `${found.length} of ${all} operations`);
    assert.equal(await page.locator('.contents a:visible[href^="#op-"]').count(), found.length);
    await page.getByRole('searchbox').fill('');
    assert.equal((await shown()).length, all);
    await page.context().close();
  });

  test('a snippet is copied by its button', async () => {
    const { page } = await browser.open(service.url, { permissions: ['clipboard-read', 'clipboard-write'] });
    await page.getByRole('button', { name: 'Copy' }).first().click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    const copied = await page.evaluate<string>('navigator.clipboard.readText()');
    assert.equal(copied, await page.locator('pre[data-copy]').first().textContent());
    assert.match(copied, /^# Run: .*\ncurl .*\/api\/execute\/webhook/);
    await page.context().close();
  });
});
