"""`python -m tools.s3`: build the S3 server, and print where it is."""

from tools.s3.program import SERVER

if __name__ == "__main__":
    print(SERVER.path())
