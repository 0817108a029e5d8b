// Every case of both fixtures: the verdict that all routes share, and the call itself.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { describeAddress } from '#src/adapters/outbound/addresses.ts';
import { outboundTlsContext } from '#src/adapters/outbound/connection.ts';
import { httpsOutbound } from '#src/adapters/outbound/https.ts';
import { chooseDials, type Dial, judgeAnswer, type TargetRefusal } from '#src/domain/destination/policy.ts';
import { hostOf, type Target } from '#src/domain/destination/url.ts';
import type { Refused } from '#src/domain/refusal.ts';
import { judgeTargetText } from '#test/support/given/judge-text.ts';
import { caseResolver, type SsrfCase, ssrfCases } from '#test/support/given/ssrf.ts';
import { startTlsTarget, type TlsTarget } from '#test/support/process/tls-target.ts';
import { clock, requestTo, rulesWith, withListener } from './lab.ts';

const cases = ssrfCases();
const rules = rulesWith();

test('both fixtures exist', () => {
  assert.ok(cases.length >= 117 + 100, `${cases.length} cases`);
  assert.ok(cases.filter(({ expected }) => expected === 'allow').length >= 40);
});

type Verdict =
  | { readonly refusal: TargetRefusal | Refused<'invalid_request'> }
  | { readonly target: Target; readonly dials: readonly Dial[] };

/** As a route does: checks the text, looks the name up once, checks the addresses. */
async function verdictOf(ssrfCase: SsrfCase): Promise<Verdict> {
  const target = judgeTargetText(ssrfCase.url, describeAddress, rules);
  if ('refused' in target) return { refusal: target };
  const dials = (addresses: readonly string[]) => chooseDials(target, addresses, describeAddress, rules);
  if (target.literal) return { target, dials: dials([target.hostname]) };
  const answer = await caseResolver(ssrfCase).resolve(target.hostname, 1000);
  const verdict = judgeAnswer(target, answer, describeAddress, rules);
  if ('refused' in verdict) return { refusal: verdict };
  return { target, dials: dials(answer.outcome === 'addresses' ? answer.addresses : []) };
}

const title = ({ url, expected, why }: SsrfCase) => `${expected} ${JSON.stringify(url).slice(0, 90)}: ${why}`;

for (const ssrfCase of cases) {
  test(`verdict: ${title(ssrfCase)}`, async () => {
    const verdict = await verdictOf(ssrfCase);
    if (ssrfCase.expected === 'block') {
      assert.ok('refusal' in verdict);
      assert.equal(verdict.refusal.refused, ssrfCase.code ?? verdict.refusal.refused);
      if (ssrfCase.host === null) assert.equal(verdict.refusal.refused, 'invalid_request');
      if (ssrfCase.group === 'dns') assert.equal(verdict.refusal.refused, 'target_unresolvable');
      assert.doesNotMatch(JSON.stringify(verdict.refusal), /\d+\.\d+\.\d+|::|hook-target/);
    } else {
      assert.ok('target' in verdict);
      assert.ok(verdict.dials.length > 0);
      for (const dial of verdict.dials) {
        assert.equal(dial.exempted, false);
        assert.ok([...(ssrfCase.dns ?? []), verdict.target.hostname].includes(dial.address.text));
      }
      if (typeof ssrfCase.host === 'string') {
        assert.equal(verdict.target.hostname, ssrfCase.host.replace(/^\[|[\].]$/g, ''));
      }
    }
  });
}

/** A target that is parsed and not checked; null if the URL cannot be parsed. */
function uncheckedTarget({ url }: SsrfCase, port: number): Target | null {
  const parts = URL.parse(url);
  if (parts === null || parts.protocol !== 'https:') return null;
  const { hostname, literal, authority } = hostOf(parts.hostname);
  const origin = `https://${authority}:${port}`;
  return { href: `${origin}/`, origin, hostname, port, path: '/', literal, plain: true };
}

/** Cases that are blocked by their text alone: their hosts are public, or missing. */
const TEXT_ONLY = ['userinfo', 'port', 'parser-repair', 'own-host', 'scheme-parse'];
const reaching = cases.filter(
  (c) => c.expected === 'block' && !TEXT_ONLY.includes(c.group) && uncheckedTarget(c, 443) !== null,
);

test('no blocked case reaches a listening socket, even if its text was not checked', async () => {
  assert.ok(reaching.length >= 120, `${reaching.length} cases`);
  await withListener(
    (socket) => socket.destroy(),
    async ({ port, connections }) => {
      for (const ssrfCase of reaching) {
        // A blocked name resolves to loopback unless the case names addresses: the worst case.
        const resolver = caseResolver({ ...ssrfCase, dns: ssrfCase.dns ?? ['127.0.0.1'] });
        const outbound = httpsOutbound({
          resolver,
          permits: () => true,
          chooseDials: (target, addresses) => chooseDials(target, addresses, describeAddress, rules),
          secureContext: outboundTlsContext(null),
          keptHeaders: [],
          clock,
        });
        const target = uncheckedTarget(ssrfCase, port);
        assert.ok(target);
        const report = await outbound.send({
          ...requestTo('https://x.example.com/'),
          target,
          timeoutMs: 2000,
        });
        assert.ok(['target_refused', 'dns_error'].includes(report.errorCategory ?? ''), title(ssrfCase));
        assert.deepEqual([report.sent, report.address], ['no', null], title(ssrfCase));
        assert.ok(resolver.lookups() <= 1, title(ssrfCase));
      }
      assert.equal(connections(), 0);
    },
    { host: '::' },
  );
});

const allowed = cases.filter(({ expected }) => expected === 'allow');
let stand: TlsTarget;
before(async () => {
  const hosts = allowed.map((ssrfCase) => hostOf(URL.parse(ssrfCase.url)?.hostname ?? '').hostname);
  stand = await startTlsTarget({ names: ['127.0.0.1', ...new Set(hosts)] });
});
after(() => stand.close());

for (const ssrfCase of allowed) {
  test(`call: ${title(ssrfCase)}`, async () => {
    const target = judgeTargetText(ssrfCase.url, describeAddress, rules);
    assert.ok(!('refused' in target));
    const resolver = caseResolver(ssrfCase);
    const chosen: string[] = [];
    const loopback = describeAddress('127.0.0.1');
    assert.ok(loopback);
    const outbound = httpsOutbound({
      resolver,
      permits: () => true,
      // The real address is checked, then replaced by a target on this machine.
      chooseDials: (judged, addresses) => {
        const dials = chooseDials(judged, addresses, describeAddress, rules);
        chosen.push(...dials.map(({ address }) => address.text));
        return dials.map((dial) => ({ ...dial, address: loopback }));
      },
      secureContext: outboundTlsContext(stand.caPem),
      keptHeaders: [],
      clock,
    });
    const before = stand.requests.length;
    const origin = `${target.origin.replace(/:\d+$/, '')}:${stand.port}`;
    const stoodIn = { ...target, origin, port: stand.port };
    const report = await outbound.send({ ...requestTo('https://x.example.com/'), target: stoodIn });
    assert.equal(report.errorCategory, null);
    const [request, ...more] = stand.requests.slice(before);
    assert.equal(more.length, 0);
    assert.equal(request?.path, target.path);
    assert.equal(request?.servername, target.literal ? null : target.hostname);
    assert.equal(request?.headers.host, origin.slice('https://'.length));
    assert.deepEqual(chosen.toSorted(), [...(ssrfCase.dns ?? [target.hostname])].toSorted());
    assert.equal(resolver.lookups(), target.literal ? 0 : 1);
  });
}
