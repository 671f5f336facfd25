"""What two runs, or two metric files, have in common and where they part. Pure: reads runs that others opened."""
