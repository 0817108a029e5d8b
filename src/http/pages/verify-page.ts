// The page where anyone verifies a receipt in their own browser, and the script that pages run.
import type { Facts } from '#src/discovery/facts.ts';
import { pathTemplate, ROUTES } from '#src/discovery/routes.ts';
import { type Endpoint, endpoint } from '#src/http/endpoint.ts';
import { publisher } from '#src/http/response/conditional-get.ts';
import type { Transparency } from '#src/usecases/transparency/proofs.ts';
import { ASK_AGAIN, type Markup, markup, pagesFrom, styleRoute } from './page.ts';
import { commandLine, whatItProves } from './proof-page.ts';

type VerifyPageDeps = {
  readonly transparency: Pick<Transparency, 'latest'>;
  readonly verifyScript: string;
};

export function verifyPageRoutes({ transparency, verifyScript }: VerifyPageDeps, facts: Facts): Endpoint[] {
  const pages = pagesFrom(facts.baseUrl, verifyScript);
  const publish = publisher(facts);
  const page = (logged: boolean) => () => ({
    title: 'Verify a receipt',
    description:
      'Verify a receipt of this relay, or of another one, in your own browser: nothing is uploaded.',
    path: ROUTES.verifyPage.path,
    content: content(facts, logged),
    scripted: true,
  });
  const published = (logged: boolean) => pages.published(publish, page(logged), ASK_AGAIN);
  const [logged, unlogged] = [published(true), published(false)];
  return [
    endpoint(ROUTES.verifyPage, null, (call) => (transparency.latest() === null ? unlogged : logged)(call)),
    endpoint(
      ROUTES.verifyScript,
      null,
      publish(ROUTES.verifyScript.mediaType, () => verifyScript, ASK_AGAIN),
    ),
    styleRoute(publish),
  ];
}

const content = (
  { baseUrl: base, witnesses }: Facts,
  logged: boolean,
): Markup => markup`<h1>Verify a receipt</h1>
<p class="lead">Your own browser checks it, on this page. Nothing is uploaded: what you paste or choose here stays here.</p>
<p id="no-script">This page checks with JavaScript, which does not run here. Without it, verify <a href="#command-line">on the command line</a>.</p>
<form id="verify-form" data-keys="${ROUTES.jwks.path}" aria-label="Verify a receipt" novalidate hidden>
${field('receipt', 'Receipt', markup`A JWS, the JSON of <code>GET /api/receipts/{id}</code>, or an execution response, whose disclosures are opened too. Paste it, or choose a file.`, 7)}
<fieldset><legend>Keys</legend>
<p><label class="choice"><input type="radio" name="keys" id="keys-relay" checked><span>This relay’s, fetched from <code>${ROUTES.jwks.path}</code></span></label></p>
<p><label class="choice"><input type="radio" name="keys" id="keys-own"><span>A key set of mine: kept from before, or of another relay. Then nothing is fetched, and it works offline.</span></label></p>
<div id="own-keys" hidden>${field('keys', 'Key set', markup`A JWK set (RFC 7517), as <code>${ROUTES.jwks.path}</code> shows it.`, 4)}</div>
</fieldset>
<details><summary>More to check: proof of the transparency log, witnesses, disclosures</summary>
${field('proof', 'Proof of inclusion', markup`The text of <code>/log/proof/{receiptId}</code>: then the receipt must stand in the transparency log.`, 4)}
${field('policy', 'Witness policy', markup`A policy file (C2SP tlog-policy) of your own: a quorum of the witnesses in it must have cosigned the checkpoint of the proof.`, 4)}
${field('disclosures', 'Disclosures', markup`A JSON array, or the execution response that has them: each must be one that the receipt commits to.`, 4)}
</details>
<p><button type="submit">Verify</button></p>
</form>
<p id="state" role="status"></p>
<section id="result" aria-labelledby="result-title" hidden><h2 id="result-title" tabindex="-1">Result</h2><div id="findings"></div></section>
<h2 id="command-line">On the command line</h2>
<p>The same checks, by the same code, without a browser and without this relay:</p>
${commandLine(`${base}${ROUTES.jwks.path}`, logged ? `${base}${pathTemplate(ROUTES.logProof.path)}` : null)}
${whatItProves(witnesses)}`;

const field = (id: string, name: string, help: Markup, rows: number): Markup => markup`<div class="drop">
<label for="${id}">${name}</label>
<p class="note" id="${id}-help">${help}</p>
<textarea id="${id}" rows="${rows}" aria-describedby="${id}-help" spellcheck="false" autocomplete="off" autocapitalize="off"></textarea>
<input type="file" id="${id}-file" aria-label="${name}: choose a file">
</div>`;
