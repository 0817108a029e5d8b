// Addresses that are no operations of the interface: well-known files, the transparency log, and pages for people.
import { aside } from './route-facts.ts';

export const WELL_KNOWN = {
  jwks: aside('/.well-known/jwks.json', 'verification', 'Public keys that receipts verify with (RFC 7517)'),
  did: aside('/.well-known/did.json', 'verification', 'The same keys as a DID document (did:web)'),
  x402: aside('/.well-known/x402', 'discovery', 'Paid resources of this host'),
  x402Items: aside('/.well-known/x402.json', 'discovery', 'Paid resources with their payment requirements'),
  agent: aside('/.well-known/agent.json', 'discovery', 'Agent manifest'),
  mcpWellKnown: aside('/.well-known/mcp.json', 'discovery', 'MCP manifest'),
  apiCatalog: aside('/.well-known/api-catalog', 'discovery', 'API catalog (RFC 9727)'),
  robots: aside('/robots.txt', 'discovery', 'Rules for crawlers (RFC 9309)'),
  favicon: aside('/favicon.svg', 'service', 'Icon'),
  faviconIco: aside('/favicon.ico', 'service', 'Icon'),
};

export const LOG = {
  logCheckpoint: aside('/log/checkpoint', 'transparency', 'Newest checkpoint of the transparency log (C2SP)'),
  logKey: aside('/log/key', 'transparency', 'Key that signs the checkpoints, as a note verifier key'),
  logTile: aside('/log/tile/*', 'transparency', 'Tiles of the transparency log (C2SP tlog-tiles)'),
  logProof: aside(
    '/log/proof/:receiptId',
    'transparency',
    'Proof that a receipt is in the log (C2SP tlog-proof)',
  ),
  logConsistency: aside(
    '/log/consistency',
    'transparency',
    'Proof that the log only grew between two of its sizes (?from=&to=)',
  ),
};

export const PAGES = {
  verifyPage: aside('/verify', 'verification', 'Verify a receipt in your own browser'),
  verifyScript: aside('/verify.js', 'verification', 'The verifier that the pages run'),
  frontPage: aside('/', 'service', 'What this service is, for people'),
  statusPage: aside('/status', 'transparency', 'How the service does, drawn'),
  docsPage: aside('/docs', 'discovery', 'The interface description as a page'),
};
