// The proof page in a real browser: all of it is there without a script, and the page asks nobody else for anything.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { chromiumPath, requirement } from '#test/support/requirements.ts';
import type { Service } from '#test/support/service.ts';
import { ALL_CHECKS } from '#test/support/service-receipts.ts';
import { execute, makeWorld, type World } from '#test/support/service-world.ts';

const chromium = chromiumPath();
const needs = requirement('Chromium', chromium !== null, 'no chromium on PATH');
const run = promisify(execFile);

let world: World;
let service: Service;
before(async () => {
  world = await makeWorld();
  service = await world.start();
});
after(() => world.end());

/** The page's DOM as the browser built it, and what it said meanwhile (a broken content security policy is said). */
async function open(
  url: string,
  profile: string,
): Promise<{ readonly dom: string; readonly said: string[] }> {
  const { stdout, stderr } = await run(
    chromium ?? '',
    [
      ...[
        '--headless',
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-sync',
      ],
      ...[
        '--disable-background-networking',
        '--disable-component-update',
        '--enable-logging=stderr',
        '--v=0',
      ],
      ...[`--user-data-dir=${join(world.folder, profile)}`, '--dump-dom', url],
    ],
    { timeout: 60_000 },
  );
  return { dom: stdout, said: stderr.split('\n').filter((line) => line.includes('CONSOLE')) };
}

test(
  'proof page: job, receipt and every check stand in it, and nothing is refused or loaded from elsewhere',
  needs,
  async () => {
    world.target.answer(() => ({ status: 200, headers: {}, body: 'fine' }));
    const { body } = await execute(service, { url: world.target.url('/hook') });
    const { dom, said } = await open(`${service.url}/proof/${body.job.id}`, 'job');
    for (const text of [body.job.id, body.receipt.id, 'verified', ...ALL_CHECKS])
      assert.ok(dom.includes(text), text);
    assert.doesNotMatch(dom, /<(script|img|link|iframe)\b/);
    assert.deepEqual(said, []);
  },
);

test('proof page: an unknown id has a page that says so', needs, async () => {
  const { dom, said } = await open(`${service.url}/proof/job_${'0'.repeat(26)}`, 'unknown');
  assert.match(dom, /<h1>No proof here<\/h1>/);
  // The browser itself reports the status 404 of the page.
  assert.deepEqual(
    said.filter((line) => !line.includes('404')),
    [],
  );
});
