// The doctor on the keys by which targets verify outbound requests (Web Bot Auth): whether PUBLIC_BASE_URL publishes those of the key file.
import { existsSync } from 'node:fs';
import { readKeyFile } from '#src/adapters/signing/key-file.ts';
import type { Config } from '#src/config.ts';
import { WELL_KNOWN_ROUTES } from '#src/discovery/routes.ts';
import { DIRECTORY_TYPE } from '#src/domain/destination/message-signature.ts';
import { isObject } from '#src/lib/is-object.ts';
import { type Checked, fine, problem, skipped } from './finding.ts';
import { noAnswer, unanswered } from './listen.ts';

const { path } = WELL_KNOWN_ROUTES.agentDirectory;
const ANSWER_MS = 5000;

export async function checkAgentDirectory({
  webBotAuth,
  publicBaseUrl,
  listen,
  keyFile,
}: Config): Promise<Checked> {
  if (!webBotAuth)
    return skipped(
      'outbound requests have no message signature: WEB_BOT_AUTH is off, or the base URL no https',
    );
  if (!existsSync(keyFile.path)) return fine('outbound requests will be signed from the first start on');
  const url = `${publicBaseUrl}${path}`;
  const answer = await asked(url);
  if (typeof answer === 'string') return unanswered(url, answer, listen);
  const { status, type, signed, ids } = answer;
  if (status !== 200 || type !== DIRECTORY_TYPE || !signed)
    return problem(
      `${url} answers ${status}, ${type ?? 'no type'}${signed ? '' : ', unsigned'}: targets cannot verify this relay; compare what the proxy passes on`,
    );
  const held = readKeyFile(keyFile.path).keys.flatMap((key) =>
    key.status === 'active' && key.agentKey !== null ? [key.agentKey.keyId] : [],
  );
  return held.some((id) => ids.includes(id))
    ? fine(`${url} publishes the key that signs outbound requests`)
    : problem(
        `${url} publishes none of the keys of ${keyFile.path}: another service answers there, or another key file`,
      );
}

/** The reason if there is no answer. */
async function asked(url: string) {
  try {
    const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(ANSWER_MS) });
    const { status, headers } = response;
    const body: unknown = await response.json().catch(() => null);
    const keys: readonly unknown[] = isObject(body) && Array.isArray(body.keys) ? body.keys : [];
    return {
      status,
      type: headers.get('content-type'),
      signed: headers.has('signature') && headers.has('signature-input'),
      ids: keys.flatMap((key) => (isObject(key) && typeof key.kid === 'string' ? [key.kid] : [])),
    };
  } catch (error) {
    return noAnswer(error);
  }
}
