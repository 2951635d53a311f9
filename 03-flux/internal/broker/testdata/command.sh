#!/bin/sh
# The command, quoted for the shell, which expands nothing in it.
set -- \
  'printf' \
  '%s\n' \
  'two words' \
  '' \
  'it'\''s' \
  '$HOME $(HOSTNAME) $$' \
  '{{id}}' \
  'new
line' \
  '-x' \
  'żółć'
exec "$@"
