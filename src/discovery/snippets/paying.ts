// Parts of the TypeScript snippets that pay: the stock client of x402 with a buyer's own terms before each signature.
import { DONE_WHEN } from '../completion.ts';
import type { Facts } from '../facts.ts';
import { charge, termsOf } from './pieces.ts';

/** What a description says of the reader's key and money. */
export const payingNote = (facts: Facts): string =>
  `The key comes from BUYER_PRIVATE_KEY (0x…, a wallet with a little USDC and nothing else). ${charge(facts)}`;

export const PAYING_IMPORTS = `import process from 'node:process';
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import type { Hex } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';`;

/** The members of an execution response that the snippets read. */
export const RESULT_TYPE = `{
  mode: string;
  idempotentReplay: boolean;
  job: { id: string; status: string; responseStatus: number | null };
  receipt: { id: string };
  links: { verifyReceipt: string };
}`;

/** `resource`: a TypeScript expression. Defines `client`, which signs nothing but what fits. */
export function checkedClient(facts: Facts, resource: string): string {
  const { network, asset, payTo, maxAmount } = termsOf(facts);
  return `// What this buyer accepts. Keep it in your own configuration: a 402 that asks for anything else is not signed.
const accepted = {
  resource: ${resource},
  network: '${network}',
  asset: '${asset}',
  payTo: '${payTo}',
  maxAmount: ${maxAmount}n, // atomic units of the asset: ${facts.offer.price}
};

const same = (one: string, other: string) => one.toLowerCase() === other.toLowerCase();

const client = new x402Client();
registerExactEvmScheme(client, { signer: privateKeyToAccount(process.env.BUYER_PRIVATE_KEY as Hex) });
client.onBeforePaymentCreation(async ({ paymentRequired, selectedRequirements: asked }) => {
  const checks = {
    price: BigInt(asked.amount) <= accepted.maxAmount,
    asset: same(asked.asset, accepted.asset),
    network: asked.network === accepted.network,
    payTo: same(asked.payTo, accepted.payTo),
    resource: paymentRequired.resource?.url === accepted.resource,
  };
  const wrong = Object.entries(checks).filter(([, fits]) => !fits).map(([name]) => name);
  if (wrong.length > 0) return { abort: true, reason: 'not what this buyer accepts: ' + wrong.join(', ') };
});`;
}

/** Goes after `response`: what the service answered to an execution, as `result`. */
export const READ_RESULT = `// 200: the target answered 2xx. 502: it was tried and failed; that has a receipt too. All else was not executed.
if (response.status !== 200 && response.status !== 502) {
  throw new Error(response.status + ' ' + (await response.text()));
}
const result = (await response.json()) as ${RESULT_TYPE};
console.log(result.mode, result.job.status, result.receipt.id, result.idempotentReplay ? 'replay' : 'first time');`;

/** Goes after `result`, an execution response: the completion rule. */
export const VERIFY_RESULT = `// Done only when ${DONE_WHEN}.
const report = (await (await fetch(result.links.verifyReceipt)).json()) as {
  ok: boolean;
  signatureVerified: boolean;
  checks: { name: string; ok: boolean }[];
};
const proven = report.ok && report.signatureVerified && report.checks.every(({ ok }) => ok);
console.log(proven ? 'verified' : 'NOT verified', JSON.stringify(report.checks));
if (!proven || result.job.status !== 'succeeded') process.exitCode = 1;
`;
