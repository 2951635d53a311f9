#!/bin/sh
# deploy.sh: builds the image, loads it into the nodes and applies the Deployment.
set -eu
# TODO: after a change, the Pod goes on with what was built before.
docker build -q -t exercise-22c:latest .
load exercise-22c:latest
kubectl apply -f deployment.yaml
