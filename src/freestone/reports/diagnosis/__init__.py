"""A diagnosis on the page: its parts as the template reads them, and the charts that only it has."""
