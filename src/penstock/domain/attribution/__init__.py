"""Attribution: the tags, end user and session of a request."""
