// The verifier for programs, published by the relay whose receipts it verifies: one file for import, its types, an npm
// package, and one file of Python. Each is built at the first request and kept.
import { snippet } from '#src/discovery/documents/snippets.ts';
import type { Facts } from '#src/discovery/facts.ts';
import { ROUTES, type RouteFacts } from '#src/discovery/routes.ts';
import { type Endpoint, endpoint } from '#src/http/endpoint.ts';
import { publisher } from '#src/http/response/conditional-get.ts';

export type Library = {
  text(name: 'verify.js' | 'verify.d.ts'): string;
  /** The npm package: a tar archive, compressed with gzip. */
  archive(): Uint8Array<ArrayBuffer>;
};

export type LibraryDeps = { readonly library: Library };

export function libraryRoutes({ library }: LibraryDeps, facts: Facts): Endpoint[] {
  const publish = publisher(facts);
  const file = (route: RouteFacts, build: () => string | Uint8Array<ArrayBuffer>) =>
    endpoint(route, null, publish(route.mediaType, build));
  return [
    file(ROUTES.verifierModule, () => library.text('verify.js')),
    file(ROUTES.verifierTypes, () => library.text('verify.d.ts')),
    file(ROUTES.verifierPackage, () => library.archive()),
    file(ROUTES.verifierPython, () => snippet(facts, 'python-verify-offline').code),
  ];
}
