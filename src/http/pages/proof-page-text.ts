// What a receipt proves and what it does not, for people: the same words on every page that shows one.
import { type Markup, markup } from './markup.ts';

type Claim = readonly [claim: string, why: string];

const PROVES: readonly Claim[] = [
  [
    'The relay said this, and not one letter was changed since',
    'the signature covers every byte of the receipt.',
  ],
  [
    'One request, one outcome, one payment',
    'salted hashes bind it to the target, headers, bodies and key; whoever holds those values can show that they are the ones.',
  ],
  [
    'The recorded history of the job',
    'the receipt holds a hash over every event of it: an event that is edited, dropped or moved later is caught by an audit.',
  ],
  [
    'That it stands in the transparency log, with a proof',
    'a relay that drops or rewrites it later is caught by anyone who kept a checkpoint of the log.',
  ],
];

const DOES_NOT: readonly Claim[] = [
  [
    'That it is true',
    'a false outcome, truly signed, looks like a true one. A signature proves what this relay said, not what the target did.',
  ],
  [
    'That everybody is shown the same log',
    'the log is unwitnessed: no independent witness signs its checkpoints yet. Until one does, only readers who compare theirs catch a relay that shows two.',
  ],
  [
    'When it was issued',
    'the time in it is the relay\u2019s own word; only the timestamp of a witness would catch backdating.',
  ],
  [
    'Whose keys these are',
    'keys fetched from the relay show that it agrees with itself. A key set that you kept from before shows more.',
  ],
];

const list = (claims: readonly Claim[]) =>
  markup`<ul>${claims.map(([claim, why]) => markup`<li><strong>${claim}</strong>: ${why}</li>`)}</ul>`;

/** Two headings of the second level. */
export const WHAT_IT_PROVES: Markup = markup`<h2>What a receipt proves</h2>${list(PROVES)}
<h2>What it does not prove</h2>${list(DOES_NOT)}`;

/**
 * How to verify without this page. `keys`, `proof`: addresses of the key set and of the receipt's proof file; null:
 * there is no transparency log.
 */
export const commandLine = (keys: string, proof: string | null): Markup =>
  proof === null
    ? markup`<pre class="wrap"><code>curl -sf ${keys} &gt; jwks.json
relay verify receipt.json --keys jwks.json</code></pre>`
    : markup`<pre class="wrap"><code>curl -sf ${keys} &gt; jwks.json
curl -sf ${proof} &gt; receipt.tlog-proof
relay verify receipt.json --keys jwks.json --proof receipt.tlog-proof</code></pre>
<p class="note">A receipt is in the transparency log some seconds after its issue: before, <code>curl</code> fails, and there is no proof to give yet.</p>`;
