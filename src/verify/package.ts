// The files beside the code in the npm package that the build makes: what is installed to verify receipts, or to buy calls,
// without this project. The verifier has no dependency; the client takes the packages of the buyer's own x402 client. src/app/library.ts packs the same list.

/** In the package, `package.json` apart. */
export const PACKAGED = [
  'LICENSE',
  'README.md',
  'client.d.ts',
  'client.js',
  'verify.d.ts',
  'verify.js',
] as const;

export const packageJson = (version: string): string =>
  `${JSON.stringify(
    {
      name: 'webhook-relay',
      version,
      description: 'Verifies receipts of a webhook relay, offline; buys calls from one.',
      type: 'module',
      license: 'MIT',
      engines: { node: '>=20' },
      sideEffects: false,
      exports: {
        './verify': { types: './verify.d.ts', default: './verify.js' },
        './client': { types: './client.d.ts', default: './client.js' },
      },
      peerDependencies: { '@x402/evm': '^2.27.0', '@x402/fetch': '^2.27.0' },
      peerDependenciesMeta: { '@x402/evm': { optional: true }, '@x402/fetch': { optional: true } },
      files: PACKAGED,
    },
    null,
    2,
  )}\n`;

export const README = `# webhook-relay

Verifies receipts of a webhook relay offline: no dependency, no network, Node 20 or newer, Bun, Deno, browsers.

\`\`\`js
import { verifyCheckpoint, verifyConsistency, verifyProof, verifyReceipt } from 'webhook-relay/verify';

// receipt: a JWS, the answer of /api/receipts/{id}, or an execution response. keys: the relay's JWK set, from a source
// that you trust. proof: the text of /log/proof/{receiptId}.
const report = await verifyReceipt(receipt, { keys, proof });
if (!report.ok) throw new Error(JSON.stringify(report.checks));

// Two checkpoints that you kept, and the answer of /log/consistency?from=&to= between their sizes.
const continued = await verifyConsistency({ older, newer, proof: answer }, { keys });
\`\`\`

\`webhook-relay/client\` buys a call with your own x402 client (\`npm install @x402/fetch @x402/evm viem\`), and resolves only with
a purchase whose receipt is verified against the order and the payment:

\`\`\`js
import { registerExactEvmScheme } from '@x402/evm/exact/client';
import { x402Client } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';
import { RelayError, relayClient } from 'webhook-relay/client';

const wallet = new x402Client();
registerExactEvmScheme(wallet, { signer: privateKeyToAccount(process.env.BUYER_PRIVATE_KEY) });
const relay = relayClient({ relay: 'https://relay.example', wallet, maxPriceUsd: '0.003', network: 'eip155:8453', payTo: '0x…' });
try {
  const { outcome, receipt } = await relay.execute({ url: 'https://example.com/hook', body: {}, idempotencyKey: 'order-17' });
} catch (error) {
  if (error instanceof RelayError) console.error(error.code, error.member, error.problem?.code);
}
\`\`\`

The types document every option, report and error. The code is built from the sources of the relay and is not minified.
`;
