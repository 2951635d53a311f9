#!/bin/sh
# deploy.sh: builds the image, loads it into the nodes and applies the Deployment.
set -eu
docker build -q -t page:latest .
load page:latest
content=$(cat Dockerfile greeting page | cksum | tr ' ' -)
sed "s#content: none#content: \"$content\"#" deployment.yaml | kubectl apply -f -
