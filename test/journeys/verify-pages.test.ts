// The pages of a real service that verify in the reader's browser: what is shown as verified was verified there, changed
// answers are found, the page sends nothing, and the keyboard is enough.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { chromiumPath, requirement } from '#test/support/chain/requirements.ts';
import { signed } from '#test/support/given/given-receipt.ts';
import * as given from '#test/support/log/logged-receipt.ts';
import {
  type Heard,
  resize,
  startBrowser,
  type TestBrowser,
  type Window,
} from '#test/support/process/browser.ts';
import { type Service, waitFor } from '#test/support/process/service.ts';
import { c2spKey } from '#test/support/witness/c2sp.ts';
import { cosignedBy, policyText } from '#test/support/witness/cosigned.ts';
import { RECEIPT_CHECKS, SERVED_CHECKS } from '#test/support/world/service-receipts.ts';
import { type Executed, execute, get, makeWorld, type World } from '#test/support/world/service-world.ts';

const { keys, jws, proof, payload } = given;
const needs = requirement('Chromium', chromiumPath() !== null, 'no chromium on PATH');

let world: World;
let service: Service;
let browser: TestBrowser;
let executed: Executed;
describe('pages that verify', needs, () => {
  before(async () => {
    world = await makeWorld();
    [service, browser] = await Promise.all([world.start(), startBrowser()]);
    executed = (
      await execute(service, {
        url: world.target.url('/hook'),
        headers: { 'x-one': '1' },
        idempotencyKey: 'k',
      })
    ).body;
  });
  after(async () => {
    await browser.close();
    await world.end();
  });

  const PHONE = { width: 360, height: 740 };
  const DESKTOP = { width: 1440, height: 900 };

  /** A page in its own window, which may make requests to this relay only. */
  async function on(path: string, look: (page: Page, heard: Heard) => Promise<void>, window: Window = {}) {
    const { page, heard } = await browser.open(`${service.url}${path}`, window);
    await look(page, heard);
    assert.deepEqual(
      heard.requests.filter((address) => new URL(address).origin !== service.url),
      [],
    );
    await page.context().close();
  }

  const ended = (page: Page, id: string) => page.waitForSelector(`#${id} .pill:not(.running)`);
  /** The visible text. */
  // biome-ignore lint/performance/useDomNodeTextContent: hidden text must not count
  const textOf = (page: Page, selector: string) => page.locator(selector).innerText();
  const rowsOf = (page: Page, selector: string) =>
    page.locator(`${selector} tbody tr`).evaluateAll((rows) => rows.map((row) => row.textContent ?? ''));

  const receiptAnswer = async () =>
    (await get<{ readonly checkpoint: string | null }>(`${service.url}/api/receipts/${executed.receipt.id}`))
      .body;
  const logged = () =>
    waitFor('a checkpoint that includes it', async () => (await receiptAnswer()).checkpoint !== null);

  async function fitsBothSizes(page: Page): Promise<void> {
    await page.evaluate('document.querySelectorAll("details").forEach((one) => { one.open = true; })');
    for (const viewport of [DESKTOP, PHONE]) {
      await resize(page, viewport);
      const beyond = await page.evaluate<readonly string[]>(TOUCHING);
      assert.deepEqual(beyond, [], 'what touches the edge of its card');
      const width = await page.evaluate<number>('document.documentElement.scrollWidth');
      assert.ok(width <= viewport.width, `${width} wide, not ${viewport.width}`);
    }
  }

  /** Texts of elements inside a card that reach its edge, except in what scrolls. */
  const TOUCHING = `[...document.querySelectorAll('.own *, .card *')].filter((one) => {
    const inside = (box) => one.getBoundingClientRect().right <= box.getBoundingClientRect().right - 4;
    return one.getClientRects().length > 0 && !one.closest('pre') && !inside(one.closest('.own, .card'));
  }).map((one) => one.textContent)`;

  /** The requests of a page load; the browser may also request the icon. */
  const OF_THE_PAGE = ['/verify', '/verify.js', '/page.css', '/favicon.svg'];

  async function verified(page: Page): Promise<string> {
    await page.getByRole('button', { name: 'Verify', exact: true }).click();
    await ended(page, 'state');
    return textOf(page, '#state');
  }

  test('/verify: an execution response is checked with the keys of this relay, and its disclosures are opened', async () => {
    await on('/verify', async (page, heard) => {
      await page.getByRole('textbox', { name: 'Receipt' }).fill(JSON.stringify(executed));
      assert.match(
        await verified(page),
        /^verified The receipt is genuine: 7 of 8 checks hold, 1 was not checked\. The call that it records succeeded: answer 200\./,
      );
      assert.equal(await page.evaluate('document.activeElement.id'), 'result-title');
      const text = await textOf(page, '#findings');
      for (const words of [
        ...RECEIPT_CHECKS,
        world.target.url('/hook'),
        'x-one',
        '8 are opened here',
        'No proof was given',
      ])
        assert.ok(text.includes(words), words);
      assert.deepEqual(
        heard.requests
          .map((address) => new URL(address).pathname)
          .filter((path) => !OF_THE_PAGE.includes(path)),
        ['/.well-known/jwks.json'],
      );
      assert.deepEqual(heard.said, []);
    });
  });

  test("/verify: another relay's receipt verifies from files, with its own keys and proof, without a network", async () => {
    const files = { receipt: jws, keys: JSON.stringify(keys), proof };
    await on('/verify', async (page, heard) => {
      await page.context().setOffline(true);
      await page.getByRole('radio', { name: /A key set of mine/ }).check();
      await page.getByText('More to check').click();
      for (const [id, text] of Object.entries(files)) {
        const file = join(world.folder, `${id}.txt`);
        writeFileSync(file, text);
        await page.locator(`#${id}-file`).setInputFiles(file);
        await waitFor('its text', async () => (await page.locator(`#${id}`).inputValue()) !== '');
      }
      assert.match(await verified(page), /^verified/);
      assert.match(
        await textOf(page, '#findings'),
        /Index 2 in the first 5 entries of relay\.example\/receipts/,
      );
      await fitsBothSizes(page);
      const asked = heard.requests.map((address) => new URL(address).pathname);
      assert.deepEqual(
        asked.filter((path) => !OF_THE_PAGE.includes(path)),
        [],
      );
    });
  });

  test('/verify: a policy of the reader is verified in the page, without a network: who has cosigned, when, and who has not', async () => {
    const [one, two] = [c2spKey('one.example', 4), c2spKey('two.example', 4)];
    const policy = policyText({ one, two }, 'group both all one two', 'quorum both');
    const [at, time] = ['2026-01-02T00:00:00.000Z', Date.UTC(2026, 0, 2) / 1000];
    const cases: readonly (readonly [proof: string, policy: string, state: RegExp, found: RegExp | null])[] =
      [
        [
          cosignedBy(proof, time, one, two),
          policy,
          /^verified/,
          new RegExp(`verified.*receipt_witnessed\\s.*Cosigned by one at ${at}, two at ${at}\\.`, 's'),
        ],
        [
          cosignedBy(proof, time, two),
          policy,
          /^failed/,
          new RegExp(
            `failed.*receipt_witnessed\\s.*Too few witnesses have cosigned\\. Cosigned by two at ${at}\\. Not by one\\.`,
            's',
          ),
        ],
        [
          cosignedBy(proof, time, one),
          '',
          /^verified/,
          new RegExp(`Cosigned, as this checkpoint states, by one\\.example at ${at}`),
        ],
        [proof, '', /^verified/, /No witness has cosigned this checkpoint/],
        ['', policy, /^not checked .* A witness policy needs a proof of inclusion/, null],
      ];
    await on('/verify', async (page, heard) => {
      await page.context().setOffline(true);
      await page.getByRole('radio', { name: /A key set of mine/ }).check();
      await page.evaluate('document.querySelector("details").open = true');
      for (const [proof, policy, state, found] of cases) {
        for (const [id, text] of Object.entries({ receipt: jws, keys: JSON.stringify(keys), proof, policy }))
          await page.locator(`#${id}`).fill(text);
        assert.match(await verified(page), state);
        assert.equal(await page.locator('#result').isVisible(), found !== null);
        if (found !== null) assert.match(await textOf(page, '#findings'), found);
      }
      await fitsBothSizes(page);
      assert.deepEqual(heard.said, []);
    });
  });

  test('/verify: the keyboard alone is enough, and the result has the focus', async () => {
    await on('/verify', async (page) => {
      const focused = () =>
        page.evaluate<string>('document.activeElement.id || document.activeElement.innerText');
      const tabTo = async (name: string) => {
        for (let pressed = 0; pressed < 30 && (await focused()) !== name; pressed++)
          await page.keyboard.press('Tab');
        assert.equal(await focused(), name);
      };
      await tabTo('receipt');
      await page.keyboard.insertText(jws);
      await tabTo('receipt-file');
      await tabTo('keys-relay');
      await page.keyboard.press('ArrowDown');
      await tabTo('keys');
      await page.keyboard.insertText(JSON.stringify(keys));
      await tabTo('Verify');
      await page.keyboard.press('Enter');
      await ended(page, 'state');
      assert.match(await textOf(page, '#state'), /^verified/);
      assert.equal(await focused(), 'result-title');
    });
  });

  test('/verify: an invalid receipt is reported, and its content stays text', async () => {
    const evil = '<img src=x onerror="document.title=1">';
    const cases: readonly (readonly [
      receipt: string,
      state: RegExp,
      found: RegExp | null,
      more?: Readonly<Record<string, string>>,
    ])[] = [
      ['', /^not checked There is no receipt yet/, null],
      ['what is this?', /^failed The text is neither JSON nor a JWS/, /failed.*receipt_present/s],
      [
        given.withPayload({ ...payload, mode: 'demo' }),
        /^failed At least one check does not hold/,
        /failed.*signature_valid/s,
      ],
      [
        JSON.stringify(given.executionAnswer({ mode: evil })),
        /^failed/,
        /Members that differ from what was signed: mode/,
      ],
      [
        JSON.stringify(given.executionAnswer({ disclosures: given.foreignDisclosures })),
        /^failed/,
        /target_url\s*refused: it is not what this receipt commits to/,
      ],
      [
        JSON.stringify(executed),
        /^failed/,
        /Disclosures\s*Not opened: disclosures prove nothing if the receipt does not verify/,
      ],
      [jws, /^not checked It could not be checked\. keys is no JWK set/, null, { keys: '{}' }],
      [JSON.stringify(executed), /^failed/, /The key set does not contain the key that the receipt names/],
    ];
    await on('/verify', async (page, heard) => {
      await page.getByRole('radio', { name: /A key set of mine/ }).check();
      await page.evaluate('document.querySelector("details").open = true');
      for (const [receipt, state, found, more = {}] of cases) {
        for (const [id, text] of Object.entries({ receipt, keys: JSON.stringify(keys), proof: '', ...more }))
          await page.locator(`#${id}`).fill(text);
        assert.match(await verified(page), state);
        assert.equal(await page.locator('#result').isVisible(), found !== null);
        if (found !== null) assert.match(await textOf(page, '#findings'), found);
      }
      assert.equal(await page.locator('img').count(), 0);
      assert.deepEqual(heard.said, []);
    });
  });

  test('/verify: every element has a name and role, and without a script the page shows the command line', async () => {
    await on('/verify', async (page) => {
      await page.getByText('More to check').click();
      await page.getByRole('radio', { name: /A key set of mine/ }).check();
      const tree = await page.locator('main').ariaSnapshot();
      for (const part of [
        'form "Verify a receipt"',
        ...['Receipt', 'Key set', 'Proof of inclusion', 'Witness policy', 'Disclosures'].map(
          (name) => `textbox "${name}"`,
        ),
        'group "Keys"',
        'button "Receipt: choose a file"',
        'button "Verify"',
        'status',
        'heading "What it does not prove" [level=2]',
      ])
        assert.ok(tree.includes(part), `${part} in\n${tree}`);
      await page.getByRole('button', { name: 'Verify', exact: true }).click();
      assert.equal(await page.evaluate('document.activeElement.id'), 'receipt');
    });
    await on(
      '/verify',
      async (page) => {
        assert.equal(await page.locator('form').isVisible(), false);
        assert.match(await textOf(page, 'main'), /does not run here.*relay verify receipt\.json --keys/s);
      },
      { javaScriptEnabled: false },
    );
  });

  const proofPath = () => `/proof/${executed.job.id}`;

  test('proof page: without a script it shows the relay’s verification, and how to verify elsewhere', async () => {
    await on(
      proofPath(),
      async (page) => {
        await page.locator('#own-count').click();
        const text = await textOf(page, 'main');
        for (const words of [
          'Nothing was checked in your browser',
          'relay verify receipt.json',
          'Checked by this relay',
          'event_chain_matches',
          'a false outcome, truly signed',
        ])
          assert.ok(text.includes(words), words);
      },
      { javaScriptEnabled: false },
    );
  });

  for (const colorScheme of ['light', 'dark'] as const) {
    test(`proof page, ${colorScheme}: the reader's browser fetches four things and makes each check`, async () => {
      await logged();
      await on(
        proofPath(),
        async (page, heard) => {
          await ended(page, 'own-state');
          assert.match(await textOf(page, '#own-state'), /^verified Your browser has verified the receipt/);
          const rows = await rowsOf(page, '#own-check');
          assert.equal(rows.length, SERVED_CHECKS.length + 1);
          const own: readonly string[] = [...RECEIPT_CHECKS, 'receipt_logged'];
          for (const [i, name] of SERVED_CHECKS.entries())
            assert.match(
              rows[i] ?? '',
              new RegExp(`^${own.includes(name) ? 'verified' : 'ok'}.* ${name}`, 's'),
            );
          assert.match(rows.at(-1) ?? '', /^verified.*newest checkpoint.*No witness has cosigned/);
          assert.match(await textOf(page, '#redacted'), /8 values are redacted/);
          assert.equal(
            (await textOf(page, 'main')).match(/redacted\n/g)?.length,
            1,
            'one section on redaction',
          );
          assert.equal(await textOf(page, '#own-count'), `${rows.length} of ${rows.length} checks hold`);
          assert.equal(await page.locator('#own-rows').evaluate((one) => one.hasAttribute('open')), false);
          const { id } = executed.receipt;
          const asked = heard.requests.map((address) => new URL(address).pathname);
          for (const path of [
            `/api/receipts/${id}`,
            '/.well-known/jwks.json',
            `/log/proof/${id}`,
            '/log/checkpoint',
          ])
            assert.ok(asked.includes(path), path);
          await fitsBothSizes(page);
          assert.deepEqual(heard.said, []);
        },
        { colorScheme },
      );
    });
  }

  /** The proof page with changed answers of the relay; null: no answer. */
  async function changedOnTheWay(
    page: Page,
    changes: Readonly<Record<string, (text: string) => string | null>>,
  ) {
    for (const [path, change] of Object.entries(changes)) {
      await page.route(path, async (route) => {
        const response = await route.fetch();
        const body = change(await response.text());
        await (body === null ? route.abort() : route.fulfill({ response, body }));
      });
    }
    await page.goto(`${service.url}${proofPath()}`);
    await ended(page, 'own-state');
  }

  const other = (text: string, at: number) =>
    `${text.slice(0, at)}${text[at] === 'A' ? 'B' : 'A'}${text.slice(at + 1)}`;
  const changedJws = (text: string) => {
    const answer = JSON.parse(text);
    return JSON.stringify({ ...answer, jws: other(answer.jws, answer.jws.lastIndexOf('.') + 9) });
  };
  const changedPayload = (text: string) => text.replace('"status":"succeeded"', '"status":"failed"');
  const RECEIPT = '**/api/receipts/*';

  test('proof page: changed answers fail, and a young receipt is pending', async () => {
    const cases: (readonly [Parameters<typeof changedOnTheWay>[1], RegExp, RegExp])[] = [
      [{ [RECEIPT]: changedJws }, /^failed .*do not rely/, /failed.* signature_valid/],
      [{ [RECEIPT]: changedPayload }, /^failed/, /differ from what was signed: payload/],
      [{ '**/jwks.json': () => JSON.stringify(keys) }, /^failed/, /failed.* key_valid_at_issue/],
      [
        { '**/log/proof/*': (text) => text.replace(/index \d+/, 'index 7') },
        /^failed/,
        /failed.*receipt_logged.*not at the index that the proof states/,
      ],
      [
        { '**/log/checkpoint': (text) => text.replace(/\n\d+\n/, '\n9\n') },
        /^failed/,
        /failed.*newest checkpoint/,
      ],
      [
        { [RECEIPT]: (text) => JSON.stringify({ ...JSON.parse(text), checkpoint: null }) },
        /^verified/,
        /pending.*receipt_logged.*That is no error/,
      ],
      [
        { '**/log/proof/*': () => null },
        /^not checked The checks that could be made hold/,
        /not checked.*receipt_logged/,
      ],
    ];
    // The relay itself refuses what the browser can verify.
    const refusing = (html: string) =>
      html.replace(
        /<span class="pill ok">ok<(\/span><\/td>\s<td>It is signed)/,
        '<span class="pill failed">failed<$1',
      );
    cases.push([{ '**/proof/job_*': refusing }, /^failed .*do not rely/, /^failed\s.* signature_valid$/]);
    // A relay that publishes two signed trees of one size: all its answers are replaced.
    const twoTrees = {
      [RECEIPT]: () => JSON.stringify(given.receiptAnswer({ checkpoint: given.checkpoint })),
      '**/jwks.json': () => JSON.stringify(keys),
      '**/log/proof/*': () => proof,
    };
    // A relay with a log that its receipts do not name has to log them too.
    const { log: _, ...rest } = payload;
    const unpromised = { ...rest, v: 1 as const };
    const silent = await signed(unpromised, given.key);
    const unlogged = () => JSON.stringify({ ...given.receiptAnswer(), payload: unpromised, jws: silent });
    cases.push([
      { [RECEIPT]: unlogged, '**/jwks.json': () => JSON.stringify(keys) },
      /^failed/,
      /failed.* receipt_logged/,
    ]);
    // The page states who has cosigned, as the answers do, and that it has not verified it.
    const witness = c2spKey('witness.example/w1', 4);
    cases.push([
      { ...twoTrees, '**/log/checkpoint': () => cosignedBy(given.checkpoint, payload.iat, witness) },
      /^failed/,
      /newest checkpoint.*Cosigned, as this checkpoint states, by witness\.example\/w1 at .*a policy of yours verifies that/,
    ]);
    const otherTree = await given.checkpointOf(given.LEAVES.toReversed());
    cases.push(
      [
        { ...twoTrees, '**/log/checkpoint': () => otherTree },
        /^failed/,
        /failed.*another tree of the same size/,
      ],
      [
        { ...twoTrees, '**/log/checkpoint': () => given.checkpoint },
        /^failed/,
        /verified.*newest checkpoint/,
      ],
    );
    await logged();
    await on('/verify', async (page) => {
      for (const [changes, state, found] of cases) {
        await changedOnTheWay(page, changes);
        assert.match(await textOf(page, '#own-state'), state);
        const rows = [...(await rowsOf(page, '#own-check')), await textOf(page, '#own-findings')];
        const seen = rows.join('\n');
        assert.ok(
          rows.some((row) => found.test(row)),
          seen,
        );
        // Unsigned text is not shown as fact.
        assert.equal(
          seen.includes('What was signed'),
          !/failed.* (signature_valid|receipt_logged|receipt_present)/.test(seen),
        );
        await page.unrouteAll();
      }
    });
  });

  test('proof page: offline, or in a browser without Ed25519, no verdict on the receipt is shown; the check can be repeated', async () => {
    await on('/verify', async (page) => {
      await changedOnTheWay(page, { '**/jwks.json': () => null });
      assert.match(
        await textOf(page, '#own-state'),
        /^not checked Your browser could not check it\. .*you may be offline/,
      );
      await page.unroute('**/jwks.json');
      await page.getByRole('button', { name: 'Try again' }).press('Enter');
      await page.waitForSelector('#own-state .pill.verified');
    });
    await on('/verify', async (page) => {
      await page.addInitScript(
        'SubtleCrypto.prototype.importKey = () => Promise.reject(new DOMException("no", "NotSupportedError"))',
      );
      await changedOnTheWay(page, {});
      assert.match(
        await textOf(page, '#own-state'),
        /^not checked .*WebCrypto does not support Ed25519 here/,
      );
    });
  });
});
