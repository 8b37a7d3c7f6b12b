"""What the report and the review page share: the map as data and as a drawing, and safe ways into a page."""
