"""Attribution: the sources of tags, end users and sessions, and the budgets of tags."""
