"""Where bytes live: object stores (a folder, S3), the zone's layout, and conversation chains. No Prefect."""
