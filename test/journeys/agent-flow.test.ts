// A stock agent that has only a base address: llms.txt, the interface description, a free decision, its paid execution, a
// verified receipt. Of the service's addresses this file contains /llms.txt only; the agent reads all others.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { compactVerify, createLocalJWKSet, type JSONWebKeySet } from 'jose';
import { needsAnvil } from '#test/support/chain/local-payments.ts';
import { makePaidWorld, type PaidWorld } from '#test/support/world/paid-world.ts';

const needs = needsAnvil();

type Json = Readonly<Record<string, unknown>>;
type Schema = { readonly properties?: Readonly<Record<string, unknown>> };
type Media = { readonly schema?: Schema; readonly example?: Json };
type Content = { readonly content?: Readonly<Record<string, Media>> };
type Operation = {
  readonly parameters?: readonly { readonly in: string; readonly description?: string }[];
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Content>>;
  readonly 'x-payment-info'?: { readonly price: { readonly amount: string; readonly currency: string } };
};
type Document = {
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> };
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
};
type Found = Operation & { readonly method: string; readonly path: string; readonly url: string };

/** What the agent discovers from the base address. */
type Known = {
  readonly decide: Found;
  readonly execute: Found;
  readonly verify: Found;
  readonly keys: string;
};

async function read<T>(url: string, init?: RequestInit): Promise<T> {
  const response = await fetch(url, init);
  const text = await response.text();
  assert.equal(response.status, 200, `${url}: ${text}`);
  return JSON.parse(text);
}

const post = (body: unknown) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

const json = (content: Content | undefined): Media => content?.content?.['application/json'] ?? {};
const describes = (content: Content | undefined, ...names: readonly string[]) =>
  names.every((name) => json(content).schema?.properties?.[name] !== undefined);

const takesReceiptId = ({ parameters = [] }: Operation) =>
  parameters.some((parameter) => parameter.in === 'path' && /receipt/i.test(parameter.description ?? ''));

/** llmstxt.org: `- [name](address): notes`. */
function linksOf(markdown: string): ReadonlyMap<string, string> {
  const found = markdown.matchAll(/^- \[([^\]]+)\]\(([^)\s]+)\)/gm);
  return new Map([...found].map(([, name = '', address = '']) => [name.toLowerCase(), address]));
}

/** The description with each `$ref` replaced by the schema that it names; the schemas refer to each other in no circle. */
function withoutReferences(document: Document): Document {
  const { schemas } = document.components;
  const resolved = (_: string, value: unknown): unknown =>
    typeof value === 'object' && value !== null && '$ref' in value
      ? schemas[String(value.$ref).replace('#/components/schemas/', '')]
      : value;
  return JSON.parse(JSON.stringify(document, resolved));
}

async function discover(baseUrl: string): Promise<Known> {
  const guide = await fetch(`${baseUrl}/llms.txt`);
  assert.equal(guide.status, 200);
  const markdown = await guide.text();
  const linked = (word: string): string => {
    const [, address] = [...linksOf(markdown)].find(([name]) => name.includes(word)) ?? [];
    assert.ok(address, `llms.txt links no ${word}: ${markdown}`);
    return new URL(address, baseUrl).href;
  };
  const document = withoutReferences(await read<Document>(linked('openapi')));
  const server = document.servers[0]?.url.replace(/\/$/, '');
  const operations: Found[] = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      method: method.toUpperCase(),
      path,
      url: `${server}${path}`,
    })),
  );
  const only = (what: string, is: (operation: Found) => boolean): Found => {
    const [found, ...others] = operations.filter(is);
    assert.ok(found && others.length === 0, `${what}: ${others.length + Number(found !== undefined)}`);
    return found;
  };
  const isPaid = (operation: Found) => operation['x-payment-info'] !== undefined;
  return {
    decide: only(
      'a free operation that takes an action and decides',
      (operation) =>
        !isPaid(operation) &&
        describes(operation.requestBody, 'action', 'buyerPolicy') &&
        describes(operation.responses[200], 'decisionId', 'recommendation'),
    ),
    execute: only(
      'a paid operation that executes a decision',
      (operation) => isPaid(operation) && describes(operation.requestBody, 'decisionId', 'action'),
    ),
    verify: only(
      'an operation that reports on a receipt by its id',
      (operation) =>
        operation.method === 'GET' &&
        takesReceiptId(operation) &&
        describes(operation.responses[200], 'signatureVerified', 'checks'),
    ),
    keys: linked('keys'),
  };
}

/** The description's example with the agent's own values; it still matches the schema. */
function requestOf({ requestBody, path }: Found, own: Json): Json {
  const { schema, example } = json(requestBody);
  assert.ok(schema && example, `${path} has no example`);
  const request = { ...example, ...own };
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  assert.ok(ajv.validate(schema, request), `${path}: ${ajv.errorsText()} ${JSON.stringify(request)}`);
  return request;
}

type Decision = { readonly decisionId: string; readonly recommendation: string };
type Executed = {
  readonly job: { readonly id: string; readonly status: string };
  readonly receipt: { readonly id: string };
  readonly links: { readonly receipt: string; readonly verifyReceipt: string };
};
type Report = {
  readonly ok: boolean;
  readonly receiptId: string;
  readonly jobId: string;
  readonly signatureVerified: boolean;
  readonly checks: readonly { readonly name: string; readonly ok: boolean }[];
};

const MICRO = 1_000_000;

describe('a stock agent', needs, () => {
  let paid: PaidWorld;
  before(async () => {
    paid = await makePaidWorld();
  });
  after(() => paid.end());

  test('finds, decides, pays, executes and verifies, from the base address alone', async () => {
    const known = await discover((await paid.start()).url);
    const [payer] = await paid.payers(1);
    assert.ok(payer);
    const purse = await paid.chain.balanceOf(payer.address);
    const { action: example } = json(known.decide.requestBody).example ?? {};
    const action: Json = { ...(example as Json), url: paid.target.url('/bought'), idempotencyKey: 'agent' };
    const order = { action, buyerPolicy: { maxPriceUsd: '0.01' } };
    const { decisionId, recommendation } = await read<Decision>(
      known.decide.url,
      post(requestOf(known.decide, order)),
    );
    assert.equal(recommendation, 'pay_and_execute');

    /** The requirements of each 402. */
    const asked: unknown[] = [];
    const client = registerExactEvmScheme(new x402Client(), { signer: payer });
    client.onBeforePaymentCreation(async ({ paymentRequired, selectedRequirements: terms }) => {
      const { amount, network, payTo } = terms;
      asked.push({ usd: Number(amount) / MICRO, network, payTo, resource: paymentRequired.resource?.url });
    });
    const response = await wrapFetchWithPayment(fetch, client)(
      known.execute.url,
      post(requestOf(known.execute, { decisionId, action })),
    );
    const text = await response.text();
    assert.equal(response.status, 200, text);
    const { job, receipt, links }: Executed = JSON.parse(text);
    // The 402 requires what the description states.
    const { price } = known.execute['x-payment-info'] ?? {};
    const usd = Number(price?.amount);
    const { payTo } = paid;
    assert.deepEqual(asked, [{ usd, network: 'eip155:8453', payTo, resource: known.execute.url }], text);
    assert.equal(price?.currency, 'USD');
    const { requests } = paid.target;
    const sent = requests.map(({ path, body }) => [path, JSON.parse(body.toString())]);
    assert.deepEqual([job.status, sent], ['succeeded', [['/bought', action.body]]], text);
    assert.equal(purse - (await paid.chain.balanceOf(payer.address)), BigInt(usd * MICRO), text);

    // Complete only by this report (specification, Authentication, 4).
    assert.equal(links.verifyReceipt, known.verify.url.replace(/\{\w+\}/, receipt.id));
    const report = await read<Report>(links.verifyReceipt);
    const failed = report.checks.filter(({ ok }) => !ok);
    assert.deepEqual([report.ok, report.signatureVerified, failed], [true, true, []], JSON.stringify(report));
    assert.deepEqual([report.receiptId, report.jobId], [receipt.id, job.id]);
    assert.ok(report.checks.length > 10, JSON.stringify(report));

    // Verified again without the service's report.
    const { jws } = await read<{ jws: string }>(links.receipt);
    const keys = createLocalJWKSet(await read<JSONWebKeySet>(known.keys));
    const { payload } = await compactVerify(jws, keys, { algorithms: ['EdDSA'] });
    const signed = JSON.parse(new TextDecoder().decode(payload));
    assert.deepEqual(
      [signed.receiptId, signed.jobId, signed.decisionId, signed.outcome.status],
      [receipt.id, job.id, decisionId, 'succeeded'],
    );
    const parties = [signed.payment.payer, signed.payment.payTo].map((address) => address.toLowerCase());
    assert.deepEqual(parties, [payer.address.toLowerCase(), payTo.toLowerCase()]);
  });
});
