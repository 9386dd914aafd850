# What is found, what is not, and by which method.
model add
model add as a.b-c_D

play unknown paths
get /
< 404
get /v2/nothing
< 404
get /v2/models/
< 404
get /v2/models/add/
< 404
get /v2/models/add/versions
< 404
get /v2/health
< 404
get //v2
< 404
get /v2/health/live/more
< 404

play unknown model
get /v2/models/nope
< 404
json {"error": "no model 'nope'"}
get /v2/models/nope/ready
< 404
post /v2/models/nope/infer {}
< 404
post /v2/models/nope/versions/1/infer {}
< 404

play unknown version
get /v2/models/add/versions/7
< 404
json {"error": "model 'add' has no version 7"}
get /v2/models/add/versions/x
< 404
get /v2/models/add/versions/0
< 404
get /v2/models/add/versions/99999999999999999999
< 404

play wrong method
> POST /v2/health/live HTTP/1.1
> Host: a
> Content-Length: 0
>
< 405
field Allow: GET, HEAD
get /v2/models/add/infer
< 405
field Allow: POST
> DELETE /v2/models/add HTTP/1.1
> Host: a
>
< 405
field Allow: GET, HEAD
> OPTIONS /v2 HTTP/1.1
> Host: a
>
< 405
> TRACE /v2 HTTP/1.1
> Host: a
>
< 405
open

play CONNECT leads nowhere
> CONNECT example.org:80 HTTP/1.1
> Host: example.org:80
>
< 400

play a method that does not exist
> BREW /v2 HTTP/1.1
> Host: a
>
< 400
closed

play the query does not matter
get /v2/health/live?a=b&c=%zz
< 200
get /v2/models?
< 200

play absolute form
get http://example.org/v2/health/live
< 200
get HTTP://example.org
< 404

play percent-encoding is decoded once
get /v2/models/%61dd
< 200
get /v2/models/a%2eb-c_D
< 200
get /v2/models/%2561dd
< 404

play percent-encoding that is none
get /v2/models/a%zz
< 400
get /v2/models/a%4
< 400
get /v2/models/a%00
< 400
get /v2/models/%0d%0aX
< 400

play names that look like paths
get /v2/models/../models/add
< 404
get /v2/models/%2e%2e%2fadd
< 404
get /v2/models/..
< 404

play a name as long as they get, and longer
get /v2/models/nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn
< 404
get /v2/models/nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn
< 400
