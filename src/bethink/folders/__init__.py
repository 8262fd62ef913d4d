"""A space as a folder of Markdown files that people edit, both ways."""
