// Parts of the Python snippets: the standard library and nothing else, so that they run anywhere.

/** What a description says where a reader might expect a payment. */
export const NO_PYTHON_PAYMENT =
  'Standard library only: it does not pay; paying from Python takes any x402 client.';

export const PY_IMPORTS = `import json
import sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen`;

/** Defines `post`; an error answer is printed and ends the program. */
export const PY_POST = `def post(url, body):
    request = Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        with urlopen(request, timeout=30) as answer:
            return json.load(answer)
    except HTTPError as error:
        sys.exit(f"{error.code} {error.read().decode()}")`;
