// Where a document or page points to the others: RFC 8288, with the relations of RFC 8631 and RFC 9727.
import { ROUTES } from './routes.ts';

/** Value of `Link`. `baseUrl`: without a slash at its end. */
export function linkHeader(baseUrl: string): string {
  return LINKS.map(([{ path }, rel, type]) => `<${baseUrl}${path}>; rel="${rel}"; type="${type}"`).join(', ');
}

const LINKS = [
  [ROUTES.apiCatalog, 'api-catalog', 'application/linkset+json'],
  [ROUTES.openapi, 'service-desc', 'application/json'],
  [ROUTES.docsPage, 'service-doc', 'text/html'],
  [ROUTES.statusPage, 'status', 'text/html'],
  [ROUTES.llms, 'describedby', 'text/plain'],
] as const;
