"""Services of `Memory`: write, recall, browse, link, files, maintenance."""
