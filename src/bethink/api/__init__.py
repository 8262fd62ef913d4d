"""The methods of `Memory` by subject: write, recall, browse, link, files, maintenance."""
