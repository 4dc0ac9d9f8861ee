"""The pages: server-rendered, kept live by a stream, on the same functions as the API.

api = create_api(app)
pages = add_pages(api, app)   # behind the API's gate: hosts, origins, keys and sizes are checked there
...
pages.close()                 # ends the live streams, so that nothing holds up the stop
"""

from .build import Pages, add_pages

__all__ = ["Pages", "add_pages"]
