"""The custom resources of Kavka, as models. Everything a person may write in a resource is said here and only here.

From these models come the CustomResourceDefinitions (`crds/`), the reference page, the check of resource files on a
laptop and the decoding of objects from an API server, so that a field means the same everywhere.
"""

GROUP = "kavka.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
CATEGORY = "kavka"
