// Every case of both fixtures against the running process, with a real DNS server and no exemption: a forbidden target is
// refused with its code and without an address, and no socket of this machine gets a connection.
import assert from 'node:assert/strict';
import { createServer, isIP, type Server } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { SSRF_BASE_URL, type SsrfCase, ssrfCases } from '#test/support/given/ssrf.ts';
import { runtimeName } from '#test/support/process/runtime.ts';
import type { Service } from '#test/support/process/service.ts';
import { payloadOf } from '#test/support/world/service-receipts.ts';
import { type ErrorBody, execute, makeWorld, post, type World } from '#test/support/world/service-world.ts';

type Verdict = { readonly allowed?: boolean; readonly error?: ErrorBody['error'] };

const cases = ssrfCases();
const OWN = new URL(SSRF_BASE_URL).hostname;
/** Not the address of any case: a name with this service's address is refused. */
const OWN_ADDRESS = '93.184.216.1';

/** No DNS packet can contain this answer; only a faulty resolver could return it, so it cannot be tested here. */
const isSendable = ({ dns = [], dnsThen = [] }: SsrfCase) =>
  [...dns, ...dnsThen].every((address) => isIP(address) !== 0 && !address.includes('%'));
const sendable = cases.filter(isSendable);
const blocked = sendable.filter(({ expected }) => expected === 'block');
const allowed = sendable.filter(({ expected }) => expected === 'allow');

let world: World;
let service: Service;
const listeners: Server[] = [];
let connections = 0;

/** The name for DNS; null if there is none. */
function nameIn({ url }: SsrfCase): string | null {
  const host = URL.parse(url)?.hostname.replace(/\.$/, '') ?? '';
  return host === '' || host.startsWith('[') || isIP(host) !== 0 ? null : host;
}

function scriptDns(ssrfCase: SsrfCase): void {
  const name = nameIn(ssrfCase);
  if (name === null) return;
  // Without an answer in the case, a blocked name resolves to loopback: the worst possible DNS answer.
  world.dns.set(name, { addresses: ssrfCase.dns ?? ['127.0.0.1'] });
}

/** Every available port of a blocked case, on all addresses of this machine. */
async function listenEverywhere(): Promise<number[]> {
  const ports = new Set([443, 80, ...blocked.map(({ url }) => Number(URL.parse(url)?.port || 443))]);
  const bound: number[] = [];
  for (const port of ports) {
    const server = createServer((socket) => {
      connections++;
      socket.on('error', () => undefined);
      socket.destroy();
    });
    const listening = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '::', () => resolve(true));
    });
    if (!listening) continue;
    listeners.push(server);
    bound.push(port);
  }
  return bound;
}

const codeOf = ({ code, host, group, url }: SsrfCase): readonly string[] => {
  // The schema is checked first.
  if (!/^https:\/\//i.test(url)) return ['invalid_request'];
  if (code !== undefined) return [code];
  if (host === null) return ['invalid_request'];
  return group === 'dns' ? ['target_unresolvable'] : ['unsafe_target', 'invalid_request'];
};

/**
 * What Deno's own resolver cannot look up, so that it fails closed there: an underscore inside a label, and an answer of
 * over 512 bytes, which a name of 253 is where (as here) the server does not compress.
 */
function isBeyondDeno(ssrfCase: SsrfCase): boolean {
  const name = nameIn(ssrfCase) ?? '';
  return /[^.]_/.test(name) || name.length > 240;
}

const check = (url: string) => post<Verdict & ErrorBody>(`${service.url}/api/policy/check`, { url });

describe('targets that must not be reached', () => {
  before(async () => {
    world = await makeWorld();
    world.dns.set('*', { rcode: 'NXDOMAIN' });
    world.dns.set(OWN, [OWN_ADDRESS]);
    service = await world.start({
      EGRESS_ALLOW_CIDRS: '',
      PUBLIC_BASE_URL: SSRF_BASE_URL,
      ALLOW_FREE_RELAY: 'true',
    });
    const bound = await listenEverywhere();
    assert.ok(bound.length > 0, 'no port could be had');
  });
  after(async () => {
    for (const server of listeners) server.close();
    await world.end();
  });

  test('the fixtures exist, and all but three answers can be sent', () => {
    assert.ok(cases.length >= 240, `${cases.length}`);
    assert.deepEqual(
      cases
        .filter((c) => !isSendable(c))
        .map(({ dns }) => dns?.[0])
        .sort(),
      ['127.1', '2606:4700::1111%eth0', 'metadata'],
    );
    assert.ok(blocked.length >= 190, `${blocked.length}`);
    assert.ok(allowed.length >= 40, `${allowed.length}`);
  });

  for (const group of new Set(blocked.map((ssrfCase) => ssrfCase.group))) {
    test(`blocked, ${group}: refused by policy check and execution with one code, without an address`, async () => {
      for (const ssrfCase of blocked.filter((candidate) => candidate.group === group)) {
        const { url, why } = ssrfCase;
        const asked = world.dns.questions.length;
        scriptDns(ssrfCase);
        const checked = await check(url);
        const executed = await execute(service, { url });
        const title = `${JSON.stringify(url).slice(0, 90)} ${why}`;
        const error = checked.body.error;
        assert.ok(codeOf(ssrfCase).includes(error?.code ?? ''), `${title}: ${error?.code}`);
        assert.ok(
          checked.status === 400 ? error?.code === 'invalid_request' : checked.body.allowed === false,
          title,
        );
        assert.deepEqual([executed.status, executed.body.error], [400, error], title);
        assert.doesNotMatch(JSON.stringify(error), /\d+\.\d+\.\d+|::|hook-target/, title);
        const questions = world.dns.questions.slice(asked).map(({ name }) => name);
        const expected = group === 'dns' ? [nameIn(ssrfCase)] : [];
        assert.deepEqual([...new Set(questions)], expected, title);
      }
    });
  }

  test('allowed: the policy accepts all of them', async () => {
    const closed: string[] = [];
    for (const ssrfCase of allowed) {
      scriptDns(ssrfCase);
      const { status, body } = await check(ssrfCase.url);
      if (runtimeName === 'deno' && isBeyondDeno(ssrfCase)) {
        assert.deepEqual([status, body.error?.code], [200, 'target_unresolvable']);
        closed.push(ssrfCase.url);
      } else {
        assert.deepEqual(
          [ssrfCase.url, status, body.allowed, body.error],
          [ssrfCase.url, 200, true, undefined],
        );
      }
      if (nameIn(ssrfCase) === OWN) world.dns.set(OWN, [OWN_ADDRESS]);
    }
    assert.equal(closed.length, runtimeName === 'deno' ? 2 : 0);
  });

  test('a name with a public address first and loopback afterwards: checked again before it is dialled', async () => {
    const rebinding = allowed.filter(({ dnsThen }) => dnsThen !== undefined);
    assert.equal(rebinding.length, 1);
    for (const ssrfCase of rebinding) {
      const name = nameIn(ssrfCase) ?? '';
      const good = { addresses: ssrfCase.dns ?? [] };
      const bad = { addresses: ssrfCase.dnsThen ?? [] };
      const asked = world.dns.asked(name);
      // The policy's look-up, then the attempt's.
      world.dns.set(name, [...Array(asked + 1).fill(good), bad]);
      const { status, body } = await execute(service, { url: ssrfCase.url, retry: { attempts: 3 } });
      assert.equal(world.dns.asked(name), asked + 2);
      assert.deepEqual(
        [status, body.job.status, body.job.attempts, body.job.errorCategory],
        [502, 'failed', 1, 'target_refused'],
      );
      const [attempt] = payloadOf(body.receipt.jws).attempts;
      assert.deepEqual([attempt?.sent, attempt?._sd], ['no', []]);
    }
  });

  test('no socket of this machine got a connection', () => {
    assert.equal(connections, 0);
    assert.equal(world.target.connections(), 0);
  });
});
