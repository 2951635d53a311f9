#!/bin/sh
# deploy.sh: builds the image, loads it into the nodes and applies the Deployment.
set -eu
# TODO: after a change, the Pod goes on with what was built before.
docker build -q -t page:latest .
load page:latest
kubectl apply -f deployment.yaml
