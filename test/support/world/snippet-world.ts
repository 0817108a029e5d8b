// A paid service on a local chain, the snippets that it serves, and runs of them: what they did at the target and in a
// wallet.
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import {
  type RunnableSnippet,
  type RunOptions,
  runSnippet,
  type SnippetRun,
  snippetFolder,
} from '#test/support/process/run-snippet.ts';
import type { Service } from '#test/support/process/service.ts';
import { makePaidWorld, type PaidWorld } from './paid-world.ts';
import { get } from './service-world.ts';

export const PRICE = 3000n;
const PURSE = 10_000n;
/** What the snippets ask their readers to change. */
export const TARGET = 'https://example.com/hook';

export type SnippetsDocument = {
  readonly groups: readonly { readonly id: string; readonly snippets: readonly RunnableSnippet[] }[];
};

export type Wallet = {
  readonly env: { readonly BUYER_PRIVATE_KEY: string };
  spent(): Promise<bigint>;
};

export const readSnippets = async ({ url }: { readonly url: string }): Promise<SnippetsDocument> =>
  (await get<SnippetsDocument>(`${url}/api/snippets`)).body;

export const allOf = ({ groups }: SnippetsDocument): readonly RunnableSnippet[] =>
  groups.flatMap(({ snippets }) => snippets);

/** Called once at the top of a suite: it stands from `before` to `after`. */
export function snippetWorld() {
  let paid: PaidWorld;
  let service: Service;
  let folder: string;
  let document: SnippetsDocument;
  const tried = new Set<string>();
  before(async () => {
    paid = await makePaidWorld();
    service = await paid.start({ SCHEDULES: 'on' });
    folder = snippetFolder(paid.folder);
    document = await readSnippets(service);
  });
  after(() => paid.end());

  const world = {
    get paid() {
      return paid;
    },
    get service() {
      return service;
    },
    get document() {
      return document;
    },
    /** Ids of the snippets that were asked for. */
    tried,
    /** As served, but for the target: `path` there. */
    snippet(id: string, path: string): RunnableSnippet {
      tried.add(id);
      const found = allOf(document).find((one) => one.id === id);
      assert.ok(found, `there is no snippet ${id}`);
      return { ...found, code: found.code.replaceAll(TARGET, paid.target.url(path)) };
    },
    run: (snippet: RunnableSnippet, options?: RunOptions): Promise<SnippetRun> =>
      runSnippet(folder, snippet, options),
    calls: (path: string) => paid.target.requests.filter((request) => request.path === path),
    received: () => paid.chain.balanceOf(paid.payTo),
    async wallet(): Promise<Wallet> {
      const key = generatePrivateKey();
      const { address } = privateKeyToAccount(key);
      await paid.chain.mint([address], PURSE);
      return {
        env: { BUYER_PRIVATE_KEY: key },
        spent: async () => PURSE - (await paid.chain.balanceOf(address)),
      };
    },
    /** As it stands and without a wallet: it ends well, sends nothing to the target and moves no money. */
    async runFree(id: string, options: RunOptions = {}): Promise<SnippetRun> {
      const [had, path] = [await world.received(), `/free-${id}`];
      const run = await world.run(world.snippet(id, path), options);
      assert.equal(run.code, 0, run.output);
      assert.deepEqual([world.calls(path).length, await world.received()], [0, had], run.output);
      return run;
    },
    async jsonOf(id: string): Promise<Record<string, unknown>> {
      const { stdout, output } = await world.runFree(id);
      assert.match(stdout, /^\{/, output);
      return JSON.parse(stdout);
    },
  };
  return world;
}

export function receiptIn({ stdout, output }: SnippetRun): string {
  const [id] = /rcpt_[0-9a-z]+/.exec(stdout) ?? [];
  assert.ok(id, output);
  return id;
}
