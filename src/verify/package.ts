// The files beside the code in the npm package that the build makes: what is installed to verify receipts, without this
// project and without a dependency. src/app/library.ts packs the same list.

/** In the package, `package.json` apart. */
export const PACKAGED = ['LICENSE', 'README.md', 'verify.d.ts', 'verify.js'] as const;

export const packageJson = (version: string): string =>
  `${JSON.stringify(
    {
      name: 'webhook-relay',
      version,
      description: 'Verifies receipts and the transparency log of a webhook relay, offline.',
      type: 'module',
      license: 'MIT',
      engines: { node: '>=20' },
      sideEffects: false,
      exports: { './verify': { types: './verify.d.ts', default: './verify.js' } },
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

The types document every option, report and error. The code is built from the sources of the relay and is not minified.
`;
