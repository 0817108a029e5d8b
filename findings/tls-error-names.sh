#!/bin/sh
# Bun 1.4.4 and Deno 2.9.6, node:tls, found 2026-11-28.
#
# The good guess: `error.code` of a refused certificate is OpenSSL's, as in Node: CERT_HAS_EXPIRED, DEPTH_ZERO_SELF_SIGNED_CERT, …
# What happens: Deno reports an expired certificate of a trusted authority as UNABLE_TO_VERIFY_LEAF_SIGNATURE, the code of an
# unknown authority. Bun reports a self-signed certificate so, if its key usage does not have keyCertSign, as that of a server
# should not. Node 20 has a code of its own for each.
# Why it matters: who reads `code` to say what has to be mended sends the owner of an expired certificate to look for a missing
# intermediate certificate. In Bun the certificate can still be read in an own `socket.destroy(error)`, by
# getPeerX509Certificate(): it is self-signed if its subject is its issuer. In Deno it cannot be read any more.
#
# Runs without the product, on TLS servers of its own on 127.0.0.1; every client checks certificates. Exits 0 if both behave as
# stated, 1 if one no longer does.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
printf '{"private":true}' > package.json
npm install --silent --no-audit --no-fund bun@1.4.4 deno@2.9.6 node-forge@1.3.1

cat > certificates.cjs <<'JS'
const forge = require('node-forge');
const { generateKeyPairSync } = require('node:crypto');
const { writeFileSync } = require('node:fs');

const DAY = 86_400_000;
const keys = () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const key = privateKey.export({ type: 'pkcs1', format: 'pem' });
  const read = forge.pki.privateKeyFromPem(key);
  return { key, private: read, public: forge.pki.setRsaPublicKey(read.n, read.e) };
};
function make(name, own, issuer, { from = -30, to = 30, ca = false }) {
  const certificate = forge.pki.createCertificate();
  certificate.publicKey = own.public;
  certificate.serialNumber = '01' + forge.util.bytesToHex(forge.random.getBytesSync(8));
  certificate.validity.notBefore = new Date(Date.now() + from * DAY);
  certificate.validity.notAfter = new Date(Date.now() + to * DAY);
  certificate.setSubject([{ name: 'commonName', value: name }]);
  certificate.setIssuer([{ name: 'commonName', value: issuer.name }]);
  certificate.setExtensions([
    { name: 'basicConstraints', cA: ca },
    ...(ca ? [{ name: 'keyUsage', keyCertSign: true }] : [{ name: 'keyUsage', digitalSignature: true }, { name: 'subjectAltName', altNames: [{ type: 2, value: 'a.example' }] }]),
  ]);
  certificate.sign(issuer.keys.private, forge.md.sha256.create());
  return forge.pki.certificateToPem(certificate);
}
const root = { name: 'root', keys: keys() };
const leaf = keys();
const rootPem = make('root', root.keys, root, { ca: true });
writeFileSync('certificates.json', JSON.stringify({
  ca: rootPem,
  key: leaf.key,
  good: make('a.example', leaf, root, {}),
  expired: make('a.example', leaf, root, { from: -30, to: -1 }),
  selfSigned: make('a.example', leaf, { name: 'a.example', keys: leaf }, {}),
}));
JS

cat > client.mjs <<'JS'
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:tls';

const { ca } = JSON.parse(readFileSync('certificates.json', 'utf8'));
const codes = [];
for (const port of process.argv.slice(2).map(Number)) {
  const options = { host: '127.0.0.1', port, servername: 'a.example', ca, rejectUnauthorized: true };
  const socket = connect(options);
  codes.push(
    await Promise.race([
      once(socket, 'secureConnect').then(() => 'accepted', (error) => error.code),
      new Promise((resolve) => socket.on('error', (error) => resolve(error.code))),
    ]),
  );
  socket.destroy();
}
console.log(JSON.stringify(codes));
JS

cat > run.cjs <<'JS'
const { execFile } = require('node:child_process');
const { readFileSync } = require('node:fs');
const { createServer } = require('node:tls');
const { promisify } = require('node:util');

const { key, good, expired, selfSigned } = JSON.parse(readFileSync('certificates.json', 'utf8'));
const listen = (cert) =>
  new Promise((resolve) => {
    const server = createServer({ key, cert }).on('tlsClientError', () => {});
    server.listen(0, '127.0.0.1', () => resolve(server));
  });
async function main() {
  const servers = await Promise.all([good, expired, selfSigned].map(listen));
  const ports = servers.map((server) => String(server.address().port));
  const codesIn = async (command, ...args) =>
    JSON.parse((await promisify(execFile)(command, [...args, 'client.mjs', ...ports])).stdout);
  const seen = {
    [`Node ${process.version}`]: await codesIn('node'),
    'Bun 1.4.4': await codesIn('node_modules/.bin/bun'),
    'Deno 2.9.6': await codesIn('node_modules/.bin/deno', 'run', '--allow-all', '--no-lock', '--quiet'),
  };
  for (const server of servers) server.close();
  console.log('a good, an expired and a self-signed certificate');
  for (const [runtime, codes] of Object.entries(seen)) console.log(runtime.padEnd(14), codes.join(', '));
  const [unknown, ownExpired, ownSelf] = ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'CERT_HAS_EXPIRED', 'DEPTH_ZERO_SELF_SIGNED_CERT'];
  const stated = { 'Bun 1.4.4': ['accepted', ownExpired, unknown], 'Deno 2.9.6': ['accepted', unknown, ownSelf] };
  const changed = Object.keys(stated).filter((runtime) => String(seen[runtime]) !== String(stated[runtime]));
  console.log(changed.length === 0 ? 'as stated' : `CHANGED: ${changed.join(', ')}`);
  process.exit(changed.length === 0 ? 0 : 1);
}
main();
JS

node certificates.cjs
node run.cjs
