// The shell that all pages share.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { markup, pagesFrom } from '#src/http/pages/page.ts';
import { PALETTE } from '#test/support/given/palette.ts';
import { clientOf } from '#test/support/process/http-client.ts';
import { fakeWorld } from '#test/support/world/http-deps.ts';

const made = async (path?: string) => {
  const response = pagesFrom('https://relay.example/').answer(200, {
    title: 'A <title>',
    description: 'Says "what" it is.',
    content: markup`<h1>Content</h1>`,
    ...(path === undefined ? {} : { path }),
  });
  return { headers: response.headers, text: await response.text() };
};

/** WCAG 2.2: contrast ratio of two sRGB colours. */
function contrast(one: string, other: string): number {
  const [light = 0, dark = 0] = [one, other].map(luminance).sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

function luminance(colour: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5]
    .map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

test('every colour that carries text stands out by 4.5 to 1 on page and card, light and dark (WCAG AA)', () => {
  assert.equal(Math.round(contrast('#000000', '#ffffff')), 21);
  const faint = Object.entries(PALETTE).flatMap(([scheme, colours]) => {
    const { paper = '', card = '', line: _, ...text } = colours;
    return Object.entries(text).flatMap(([name, colour]) =>
      [paper, card]
        .filter((ground) => contrast(colour, ground) < 4.5)
        .map((ground) => `${scheme}: ${name} on ${ground}`),
    );
  });
  assert.deepEqual(faint, []);
  for (const colours of Object.values(PALETTE)) assert.equal(Object.keys(colours).length, 9);
});

test('one style sheet of this relay passes, under an address with its hash, and nothing but the icon besides', async () => {
  const { headers, text } = await made();
  assert.equal(
    headers.get('content-security-policy'),
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  );
  assert.doesNotMatch(text, / style=|<style|<script|@import|url\(/);
  const [, address = ''] = /<link rel="stylesheet" href="([^"]+)">/.exec(text) ?? [];
  const sheet = await clientOf(fakeWorld()).get(address);
  assert.deepEqual([sheet.status, sheet.headers.get('content-type')], [200, 'text/css; charset=utf-8']);
  const hash = createHash('sha256').update(String(sheet.body)).digest('base64').slice(0, 12);
  assert.equal(address, `/page.css?${hash.replace(/[+/]/g, '-')}`);
});

test('a page that verifies runs that one script, by its hash, and may ask this relay alone', async () => {
  const script = 'said("\u2026");';
  const page = { title: 'A', description: 'B', content: markup`<h1>C</h1>`, scripted: true };
  const response = pagesFrom('https://relay.example', script).answer(200, page);
  const hash = `sha256-${createHash('sha256').update(script).digest('base64')}`;
  const scripts = (await response.text()).match(/<script[^>]*>/g);
  assert.equal(scripts?.length, 1);
  assert.match(scripts[0] ?? '', /^<script type="module" src="\/verify\.js\?[\w-]{12}" integrity="sha256-/);
  assert.ok(scripts[0]?.endsWith(` integrity="${hash}">`));
  const policy = response.headers.get('content-security-policy')?.split('; ') ?? [];
  for (const rule of [
    "default-src 'none'",
    `script-src '${hash}' https://relay.example/verify.js`,
    "connect-src 'self'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
    "form-action 'none'",
  ])
    assert.ok(policy.includes(rule), rule);
});

test('a page says what it is, where it is at home and where the others are', async () => {
  const { headers, text } = await made('/docs');
  for (const part of [
    '<title>A &lt;title&gt;</title>',
    '<meta name="description" content="Says &quot;what&quot; it is.">',
    '<link rel="canonical" href="https://relay.example/docs">',
    'href="/favicon.svg"',
    '<a href="/docs" aria-current="page">',
  ]) {
    assert.ok(text.includes(part), part);
  }
  assert.match(headers.get('link') ?? '', /<https:\/\/relay\.example\/openapi\.json>; rel="service-desc"/);
});

test('a page without an address of its own has no canonical one and is nowhere in the navigation', async () => {
  const { text } = await made();
  assert.doesNotMatch(text, /canonical|aria-current="/);
});
