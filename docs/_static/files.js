/* Browsers keep a page that is opened as a file from reading others: searches then show no excerpts. */
if (location.protocol === "file:") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}
