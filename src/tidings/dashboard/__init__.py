"""The dashboard: server-rendered pages with live updates, on the same functions as the API.

    api = create_api(app)
    dashboard = add_dashboard(api, app)   # behind the API's middleware
    ...
    dashboard.close()                     # ends the live streams before shutdown

application: adds pages and static files to the API; the template environment.
charts: data points of the small charts.
form_permissions: removes forms that the caller may not submit.
forms: parsing of submitted forms.
live_updates: live updates by server-sent events (SSE).
navigation: the navigation menu.
renderer: renders pages, fragments and errors; ViewRoute.
responses: redirects, JSON, links to the next page, action lookup.
template_filters: state labels, times and timelines for templates.
views: the pages, one module per resource.
"""

from .application import Dashboard, add_dashboard

__all__ = ["Dashboard", "add_dashboard"]
